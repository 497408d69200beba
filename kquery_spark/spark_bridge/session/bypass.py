"""A mark on the running thread: actions go to Spark as they are, whatever ``kq.enable`` says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_bypassed: ContextVar[bool] = ContextVar("kquery_spark_bypassed", default=False)


def bypassed() -> bool:
    """Return whether ``bypass`` is in force."""
    return _bypassed.get()


@contextmanager
def bypass() -> Iterator[None]:
    """Leave DataFrames alone inside this block: what runs there has been decided on."""
    token = _bypassed.set(True)
    try:
        yield
    finally:
        _bypassed.reset(token)
