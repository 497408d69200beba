"""Converts the errors of packages that read table metadata to SourceError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kquery_spark.errors import KQueryError, SourceError, Unsupported

_RUST_PANIC = "PanicException"  # of pyo3; it inherits from BaseException and cannot be imported
_MAX_CHARACTERS = 300


@contextmanager
def as_source_errors(failure: str) -> Iterator[None]:
    """Convert all errors of reading metadata to SourceError.

    The packages do not validate damaged metadata: they raise KeyError, zlib.error, or their own errors, and Rust code
    panics.

    failure: the start of the message; it says what failed and names the table.
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
    """Return the class and the message of an error, in one line of limited length."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message[:_MAX_CHARACTERS]}"
