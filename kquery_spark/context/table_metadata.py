"""Errors about the metadata of tables, which other packages read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kquery_spark.errors import KQueryError, SourceError, Unsupported

_RUST_PANIC = (
    "PanicException"  # of pyo3, which derives it from BaseException and has no module to import it from
)
_MAX_CHARACTERS = 300


@contextmanager
def as_source_errors(failure: str) -> Iterator[None]:
    """Raise SourceError for everything that reading metadata raises.

    Packages do not expect damaged metadata: they raise KeyError, zlib.error or errors of their own, and Rust code panics.
    failure: what went wrong, as the start of the message, which has to name the table.
    """
    try:
        yield
    except Unsupported as error:
        raise SourceError(f"{failure}: {error.reason}") from None
    except KQueryError:
        raise
    except Exception as error:
        raise SourceError(f"{failure}: {_described(error)}") from None
    except BaseException as error:
        if type(error).__name__ != _RUST_PANIC:
            raise
        raise SourceError(f"{failure}: {_described(error)}") from None


def _described(error: BaseException) -> str:
    """The class and the message of an error, in one line of a bounded length."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message[:_MAX_CHARACTERS]}"
