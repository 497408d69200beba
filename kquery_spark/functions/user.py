"""Functions of the user's own over Arrow arrays: how they reach the workers, and how the workers call them."""

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

_NAMELESS = "<dynamic-code>"  # what newer versions of cloudpickle say of the file of all code


@dataclass(frozen=True)
class UserFunction:
    """A function by value: its code and what it refers to, as they were at this object's creation.

    returns: its type in SQL. deterministic: whether equal arguments give equal values, so that it may run again.
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
        raise PlanError(f"a function is wanted, not {type(function).__name__}")
    shown = name or getattr(function, "__name__", type(function).__name__)
    try:
        code = cloudpickle.dumps((function, _file_of(function)))
    except Exception as error:
        raise PlanError(
            f"{shown} cannot be sent to workers, because of something it refers to: {error}"
        ) from error
    return UserFunction(shown, code, returns, deterministic)


def run(name: str, code: bytes, arrays: Sequence[pa.Array], dtype: pa.DataType, rows: int) -> pa.Array:
    """Its values for some rows, as ``dtype``; UserFunctionError where it raises or gives something else.

    The function is not called for zero rows.
    """
    if rows == 0:
        return pa.array([], dtype)
    file = _NAMELESS
    try:
        function, file = _loaded(code)
        given = function(*arrays)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{file if frame.filename == _NAMELESS else frame.filename}:{frame.lineno} in {frame.name}"
        raise UserFunctionError(f"{name} raised {type(error).__name__}: {error} ({where})") from error
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if not isinstance(given, pa.Array):
        raise UserFunctionError(f"{name} gave {type(given).__name__}; it has to give an Arrow array")
    if len(given) != rows:
        raise UserFunctionError(f"{name} gave {len(given)} values for {rows} rows")
    try:
        return given.cast(dtype)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserFunctionError(f"{name} gave {given.type} where {dtype} was announced: {error}") from error


@functools.lru_cache(maxsize=256)
def _loaded(code: bytes) -> tuple[Callable[..., Any], str]:
    """The function, and the file it was written in."""
    function, file = cast("tuple[Callable[..., Any], str]", unpickled(code))
    return function, file


def unpickled(code: bytes) -> object:
    """What a plan has as pickled code. It runs code of whoever made the plan, so it is for the engine's own plans."""
    return pickle.loads(code)


def _file_of(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None) or getattr(
        type(function).__call__, "__code__", None
    )
    return _NAMELESS if code is None else str(code.co_filename)
