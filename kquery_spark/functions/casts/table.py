"""The cast table and the two questions asked of it: is this cast supported, and can a row make it raise."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

CastKernel = Callable[[Vector, CallContext], Data]

_TABLE: dict[tuple[str, str], CastKernel] = {}


def family(dtype: pa.DataType) -> str:
    """The family a cast rule is written for: void, boolean, integral, fractional, decimal, string, date ..."""
    if t.is_integral(dtype):
        return "integral"
    if t.is_fractional(dtype):
        return "fractional"
    if t.is_decimal(dtype):
        return "decimal"
    if t.is_timestamp(dtype):
        return "timestamp"
    if pa.types.is_map(dtype):
        return "map"
    if pa.types.is_list(dtype):
        return "array"
    if pa.types.is_struct(dtype):
        return "struct"
    return t.spark_name(dtype)


def cast_rule(source: str, target: str) -> Callable[[CastKernel], CastKernel]:
    """Register the kernel that casts one family to another."""

    def add(kernel: CastKernel) -> CastKernel:
        if (source, target) in _TABLE:
            raise ValueError(f"cast {source} -> {target} is registered twice")
        _TABLE[source, target] = kernel
        return kernel

    return add


def check_cast(source: pa.DataType, target: pa.DataType) -> None:
    """Raise Unsupported unless the engine casts ``source`` to ``target`` exactly as Spark does."""
    if source != target and (family(source), family(target)) not in _TABLE:
        raise Unsupported(f"CAST from {t.spark_name(source)} to {t.spark_name(target)} is not supported.")


_SAFE = {
    ("boolean", "integral"),
    ("boolean", "string"),
    ("integral", "string"),
    ("fractional", "string"),
    ("decimal", "string"),
    ("date", "string"),
    ("timestamp", "string"),
    ("timestamp_ntz", "string"),
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
    ("timestamp", "date"),
    ("timestamp_ntz", "date"),
    ("integral", "fractional"),
    ("decimal", "fractional"),
    ("integral", "boolean"),
    ("fractional", "boolean"),
    ("decimal", "boolean"),
    ("string", "binary"),
}


def can_raise(source: pa.DataType, target: pa.DataType, mode: EvalMode) -> bool:
    """Whether some value makes this cast raise (ANSI mode only)."""
    if mode is not EvalMode.ANSI or source == target or source == t.NULL:
        return False
    kinds = (family(source), family(target))
    if kinds in _SAFE or (kinds == ("fractional", "fractional")):
        return False
    if kinds == ("integral", "integral"):
        return bool(target.bit_width < source.bit_width)
    if kinds == ("decimal", "decimal"):
        return bool(
            target.precision - target.scale < source.precision - source.scale
            or (
                target.scale < source.scale
                and target.precision - target.scale == source.precision - source.scale
            )
        )
    if kinds == ("integral", "decimal"):
        return bool(target.precision - target.scale < {8: 3, 16: 5, 32: 10, 64: 19}[source.bit_width])
    return True


def cast(vector: Vector, target: pa.DataType, mode: EvalMode, tz: str, num_rows: int) -> Vector:
    """Cast values to ``target`` with Spark's semantics; literals stay literals, dictionaries are cast once a value."""
    if vector.dtype == target:
        return vector
    if vector.dtype == t.NULL:
        return Vector(target, pa.scalar(None, target))
    kernel = _TABLE.get((family(vector.dtype), family(target)))
    if kernel is None:
        check_cast(vector.dtype, target)
        raise AssertionError
    if vector.is_scalar:
        one = Vector(vector.dtype, pa.array([vector.data.as_py()], vector.data.type))
        return Vector(target, kernel(one, CallContext(target, mode, tz, 1))[0])
    if vector.is_dictionary and len(vector.data.dictionary) <= len(vector.data):
        values = Vector(vector.dtype, vector.data.dictionary)
        try:
            done = kernel(values, CallContext(target, mode, tz, len(vector.data.dictionary)))
            return Vector(target, done.take(vector.data.indices))
        except ExecutionError:  # perhaps of a value no row refers to: the rows decide
            pass
    plain = Vector(vector.dtype, vector.plain()) if vector.is_dictionary else vector
    return Vector(target, kernel(plain, CallContext(target, mode, tz, num_rows)))
