"""The table of casts. It answers whether a cast is supported, and whether a row can make it raise an error."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.casts.nested import cast_nested, parts
from kquery_spark.functions.registry import CallContext, EvalMode, VersionChange
from kquery_spark.kernels.utf8 import is_valid, replace_malformed
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector, gather

CastKernel = Callable[[Vector, CallContext], Data]

_TABLE: dict[tuple[str, str], CastKernel] = {}

TIME_DECIMALS = 6
"""The number of decimals of a second in times, unless their type has fewer."""
CAST_CHANGES = (
    VersionChange(
        "wraps around where the seconds of a timestamp overflow the integer type",
        lambda types, _: t.is_timestamp(types[0]) and types[1] in (t.BYTE, t.SHORT, t.INT),
        since=(4, 0),
    ),
    VersionChange("has no times", lambda types, _: t.TIME in types[:2], since=(4, 1)),
    VersionChange(
        "has no such casts",
        lambda types, _: types[1] == t.TIME and bool(pa.types.is_timestamp(types[0])),
    ),
    VersionChange(
        "keeps decimals of a second that the type of the time has no room for",
        lambda types, values: (
            tuple(types[:2]) == (t.STRING, t.TIME) and any(v != TIME_DECIMALS for v in values[2:])
        ),
    ),
)
"""Casts whose results differ in earlier releases, by source and target type."""


def family(dtype: pa.DataType) -> str:
    """The type family, by which kernels are registered: void, boolean, integral, fractional, decimal, string, date ..."""
    if t.is_integral(dtype):
        return "integral"
    if t.is_fractional(dtype):
        return "fractional"
    if t.is_decimal(dtype):
        return "decimal"
    if t.is_timestamp(dtype):
        return "timestamp"
    if dtype == t.TIME:
        return "time"
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
    inner = None if source == target else parts(source, target)
    if inner is not None:
        for pair in inner:
            check_cast(*pair)
    elif source not in (target, t.NULL) and (family(source), family(target)) not in _TABLE:
        raise Unsupported(f"CAST from {t.spark_name(source)} to {t.spark_name(target)} is not supported")


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
    ("fractional", "fractional"),
    ("decimal", "fractional"),
    ("integral", "boolean"),
    ("fractional", "boolean"),
    ("decimal", "boolean"),
    ("string", "binary"),
    ("time", "string"),
    ("timestamp", "time"),
    ("timestamp_ntz", "time"),
}


def can_raise(source: pa.DataType, target: pa.DataType, mode: EvalMode) -> bool:
    """Return whether some value makes this cast raise (ANSI mode only)."""
    if mode is not EvalMode.ANSI or source == target or source == t.NULL:
        return False
    inner = parts(source, target)
    if inner is not None:
        return any(can_raise(*pair, mode) for pair in inner)
    families = (family(source), family(target))
    if families in _SAFE:
        return False
    narrows = _NARROWS.get(families)
    return narrows is None or narrows(source, target)


def _whole_digits(dtype: pa.DataType) -> int:
    """The number of digits before the decimal point."""
    return int(dtype.precision - dtype.scale)


def _decimal_narrows(source: pa.DataType, target: pa.DataType) -> bool:
    spare_digits = _whole_digits(target) - _whole_digits(source)
    # rounding to a smaller scale may carry into one more digit
    return spare_digits < 0 or (spare_digits == 0 and bool(target.scale < source.scale))


_DIGITS = {t.BYTE: 3, t.SHORT: 5, t.INT: 10, t.LONG: 19}
_NARROWS: dict[tuple[str, str], Callable[[pa.DataType, pa.DataType], bool]] = {
    ("integral", "integral"): lambda source, target: bool(target.bit_width < source.bit_width),
    ("decimal", "decimal"): _decimal_narrows,
    ("integral", "decimal"): lambda source, target: _whole_digits(target) < _DIGITS[source],
}


def prints_decimals(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether this cast prints decimals as strings, which have an exponent in some modes."""
    inner = parts(source, target)
    if inner is not None:
        return any(prints_decimals(*pair) for pair in inner)
    return t.is_decimal(source) and target == t.STRING


_ORDER = (t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE)


def _holds_all(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether every integer or decimal of ``source`` is a value of the decimal ``target``."""
    digits, scale = (
        (source.precision, source.scale) if t.is_decimal(source) else (_INTEGRAL_DIGITS[source], 0)
    )
    return bool(target.precision - target.scale >= digits - scale and target.scale >= scale)


# The precision of the decimal type that Spark uses for each integer type; for bigint, one more than its values need.
_INTEGRAL_DIGITS = {t.BYTE: 3, t.SHORT: 5, t.INT: 10, t.LONG: 20}


def _up_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether the cast loses no value (Spark's ``Cast.canUpCast``)."""
    inner = parts(source, target)
    if inner is not None:
        return all(a == b or _up_cast(a, b) for a, b in inner)
    if target == t.STRING:
        return bool(source != t.BINARY)
    if source in _ORDER and target in _ORDER:
        return bool(_ORDER.index(source) <= _ORDER.index(target))
    if t.is_decimal(target) and (t.is_decimal(source) or t.is_integral(source)):
        return _holds_all(source, target)
    return _up_casts_time(source, target)


def _up_casts_time(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether the target holds every time of the source, or the cast is between bigint and timestamp."""
    if pa.types.is_timestamp(target) and (pa.types.is_timestamp(source) or source == t.DATE):
        return True
    return {family(source), family(target)} == {"integral", "timestamp"} and t.LONG in (source, target)


def can_be_null(source: pa.DataType, target: pa.DataType, mode: EvalMode) -> bool:
    """Return whether Spark's schema calls the result nullable although the argument is not (``Cast.forceNullable``)."""
    if source == target or (source, target) == (t.STRING, t.BINARY):
        return False
    return not _up_cast(source, target) if mode is EvalMode.TRY else _may_lose(source, target)


def _may_lose(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether a cast outside of TRY mode may return NULL for a value that is not NULL, by Spark's rules."""
    families = (family(source), family(target))
    if families[0] == "string":
        return True
    if target == t.STRING or families in (("timestamp", "date"), ("date", "timestamp")):
        return False
    if t.DATE in (source, target) or families in _MAY_OVERFLOW:
        return True
    if families == ("timestamp", "integral"):
        return bool(target != t.LONG)
    if families == ("time", "integral"):
        return target in (t.BYTE, t.SHORT)
    return t.is_decimal(target) and _may_exceed_decimal(source, target)


def _may_exceed_decimal(source: pa.DataType, target: pa.DataType) -> bool:
    if t.is_fractional(source) or source == t.TIME:
        return True
    if source == t.BOOL:
        return _whole_digits(target) < 1
    return not (_holds_all(source, target) or _fits_digits(source, target))


_MAY_OVERFLOW = {("fractional", "timestamp"), ("fractional", "integral"), ("decimal", "integral")}


def _fits_digits(source: pa.DataType, target: pa.DataType) -> bool:
    """Spark's ``Cast.canNullSafeCastToDecimal`` for a smaller scale: rounding may carry into one more digit."""
    if t.is_integral(source):
        return False
    return bool(target.precision - target.scale > source.precision - source.scale)


def _cast_parts(vector: Vector, target: pa.DataType, mode: EvalMode, tz: str, num_rows: int) -> Vector:
    if vector.is_scalar and not vector.data.is_valid:
        return Vector(target, pa.scalar(None, target))
    done = cast_nested(vector.array(1), target, lambda part, to, rows: cast(part, to, mode, tz, rows))
    return Vector(target, done[0] if vector.is_scalar else done)


def cast(vector: Vector, target: pa.DataType, mode: EvalMode, tz: str, num_rows: int) -> Vector:
    """Cast values to ``target`` as Spark does; literals stay literals, and dictionary columns are cast once per value."""
    if vector.dtype == target:
        return vector
    if vector.dtype == t.NULL:
        return Vector(target, pa.scalar(None, target))
    if parts(vector.dtype, target) is not None:
        check_cast(vector.dtype, target)
        return _cast_parts(vector, target, mode, tz, num_rows)
    kernel = _TABLE.get((family(vector.dtype), family(target)))
    if kernel is None:
        check_cast(vector.dtype, target)
        raise AssertionError
    if vector.dtype == t.STRING and target != t.BINARY and not is_valid(vector.data):
        # A malformed string is never a valid number or time, not even with U+FFFD in place of the malformed bytes.
        vector = Vector(t.STRING, replace_malformed(vector.data))
    if vector.is_scalar:
        one = Vector(vector.dtype, pa.repeat(vector.data, 1))
        return Vector(target, kernel(one, CallContext(target, mode, tz, 1))[0])
    if vector.is_dictionary and len(vector.data.dictionary) <= len(vector.data):
        values = Vector(vector.dtype, vector.data.dictionary)
        try:
            done = kernel(values, CallContext(target, mode, tz, len(vector.data.dictionary)))
            return Vector(target, gather(done, vector.data.indices))
        except ExecutionError:  # perhaps for an entry that no row refers to, so cast the rows instead
            pass
    plain = Vector(vector.dtype, vector.plain()) if vector.is_dictionary else vector
    return Vector(target, kernel(plain, CallContext(target, mode, tz, num_rows)))
