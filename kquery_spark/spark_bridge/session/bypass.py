"""Marks the running thread so that Spark runs its actions unchanged, even after ``kq.enable``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_bypassed: ContextVar[bool] = ContextVar("kquery_spark_bypassed", default=False)


def is_bypassed() -> bool:
    """Return whether ``bypass`` is in force."""
    return _bypassed.get()


@contextmanager
def bypass() -> Iterator[None]:
    """Do not accelerate DataFrames inside this block, since where they run has already been decided."""
    token = _bypassed.set(True)
    try:
        yield
    finally:
        _bypassed.reset(token)
