"""User-defined functions over Arrow arrays: serializes them for the workers, and calls them there."""

from __future__ import annotations

import functools
import inspect
import pickle
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import cloudpickle
import pyarrow as pa

from kquery_spark.errors import PlanError, UserFunctionError

_NAMELESS = "<dynamic-code>"  # newer versions of cloudpickle set this as the file name of all code


@dataclass(frozen=True)
class UserFunction:
    """A function serialized by value, with everything that it refers to at this time.

    returns: the SQL type of its result. deterministic: True if equal arguments always give equal results, so that the
    function may be called again.
    """

    name: str
    code: bytes = field(repr=False)
    returns: str
    deterministic: bool = True


def user_function(
    function: Callable[..., Any], returns: str, deterministic: bool = True, name: str = ""
) -> UserFunction:
    """Serialize a function; PlanError if it is not callable or refers to something that cannot be pickled."""
    if not callable(function):
        raise PlanError(f"a function is required, not {type(function).__name__}")
    shown = name or getattr(function, "__name__", type(function).__name__)
    try:
        code = cloudpickle.dumps((function, _file_of(function)))
    except Exception as error:
        raise PlanError(
            f"{shown} cannot be sent to workers, because of something it refers to: {error}"
        ) from error
    return UserFunction(shown, code, returns, deterministic)


def run(name: str, code: bytes, arrays: Sequence[pa.Array], dtype: pa.DataType, rows: int) -> pa.Array:
    """Call a function for a batch of rows; raises UserFunctionError if it fails or its result is not ``rows`` values.

    The function is not called for zero rows.
    """
    if rows == 0:
        return pa.array([], dtype)
    file = _NAMELESS
    try:
        function, file = _load_function(code)
        result = function(*arrays)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{file if frame.filename == _NAMELESS else frame.filename}:{frame.lineno} in {frame.name}"
        raise UserFunctionError(f"{name} raised {type(error).__name__}: {error} ({where})") from error
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if not isinstance(result, pa.Array):
        raise UserFunctionError(f"{name} returned {type(result).__name__}; it must return an Arrow array")
    if len(result) != rows:
        raise UserFunctionError(f"{name} returned {len(result)} values for {rows} rows")
    try:
        return result.cast(dtype)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserFunctionError(f"{name} returned {result.type} instead of {dtype}: {error}") from error


@functools.lru_cache(maxsize=256)
def _load_function(code: bytes) -> tuple[Callable[..., Any], str]:
    """The function, and the file it was written in."""
    function, file = cast("tuple[Callable[..., Any], str]", unpickle_code(code))
    return function, file


def unpickle_code(code: bytes) -> object:
    """Unpickle code of a plan. This can run arbitrary code of the plan's author, so only the engine's own plans are safe."""
    return pickle.loads(code)


def _file_of(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None) or getattr(
        type(function).__call__, "__code__", None
    )
    return _NAMELESS if code is None else str(code.co_filename)
