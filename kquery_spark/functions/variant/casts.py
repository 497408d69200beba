"""Casts values in variants to SQL types.

The rows with values of one kind (integers, strings, ...) are cast together, by the kernels of TRY_CAST.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.functions.casts import cast
from kquery_spark.functions.casts.table import family
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.functions.variant.reading import PathValues, checked_text
from kquery_spark.kernels import variants as v
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.units import INT64_MAX, INT64_MIN
from kquery_spark.types.vector import Int64s, Vector

_NUMBERS = frozenset({"integral", "fractional", "decimal"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
# The families of types that a kind can be cast to; a string can be cast to all.
_TARGETS = {
    v.IS_BOOL: _NUMBERS | {"boolean", "string"},
    **dict.fromkeys((v.IS_LONG, v.IS_DOUBLE, v.IS_FLOAT), _NUMBERS | {"boolean", "string", "timestamp"}),
    v.IS_DECIMAL: _NUMBERS | {"boolean", "string", "timestamp"},
    v.IS_DATE: _TIMES | {"string"},
    v.IS_TIMESTAMP: _NUMBERS | _TIMES | {"string"},
    v.IS_TIMESTAMP_NTZ: _TIMES | {"string"},
    v.IS_STRING: _NUMBERS | _TIMES | {"boolean", "string", "binary"},
    v.IS_BINARY: frozenset({"string", "binary"}),
    v.IS_UUID: frozenset({"string"}),
    v.IS_OBJECT: frozenset({"string"}),
    v.IS_ARRAY: frozenset({"string"}),
}
_MICRO_DIGITS = 6  # digits of a second after the point
_MAX_DIGITS = 18  # of a power of ten in 64 bits
_WHOLE = r"\.0+$"
_ENDING_ZEROS = r"(\.[0-9]*[1-9])0+$"
# From this value on, Spark 4.0, which converts via double, returns other decimals than later releases.
_EXACT_MICROS = 10**6 << 33
_TWO_63 = 2.0**63
_DASHES = (8, 12, 16, 20)  # positions of a UUID's dashes among its digits
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def cast_values(found: PathValues, context: CallContext) -> tuple[pa.Array, bool]:
    """Cast the values to the type of the context; return them (NULL if a cast failed), and whether one failed."""
    target = family(context.dtype)
    indices = np.full(context.num_rows, -1, np.int64)
    arrays: list[pa.Array] = []
    done, failed = 0, False
    for kind in np.unique(found.kinds):
        if kind in (v.IS_ABSENT, v.IS_NULL):
            continue
        rows = np.flatnonzero(found.kinds == kind)
        if target not in _TARGETS[int(kind)]:
            failed = True
            continue
        for some in _same_scale_groups(found, int(kind), rows):
            values = _cast(found, int(kind), some, context)
            failed = failed or values.null_count > 0
            arrays.append(values)
            indices[some] = done + np.arange(len(some))
            done += len(some)
    if not arrays:
        return pa.nulls(context.num_rows, context.dtype), failed
    values = pa.concat_arrays(arrays)
    index = pa.array(indices, mask=indices < 0)
    reserve_gather([values], index)
    return values.take(index), failed


def _same_scale_groups(found: PathValues, kind: int, rows: Int64s) -> list[Int64s]:
    """The rows, those of decimals by scale."""
    if kind != v.IS_DECIMAL:
        return [rows]
    scales = found.sizes[rows]
    return [rows[scales == scale] for scale in np.unique(scales)]


def _cast(found: PathValues, kind: int, rows: Int64s, context: CallContext) -> pa.Array:
    """The values of rows of one kind, and of one scale, as the type of the context."""
    if t.is_timestamp(context.dtype) and kind in _INSTANTS:
        return _INSTANTS[kind](found, kind, rows).view(context.dtype)
    source = _READERS[kind](found, rows)
    if pa.types.is_timestamp(source.type) and source.type.tz is not None:
        source = source.cast(t.timestamp(context.tz))
        if t.is_decimal(context.dtype):
            source = _as_seconds(found.lows[rows])
    if kind == v.IS_BINARY and context.dtype == t.STRING:
        return checked_text(source)
    values = _try_cast(source, context.dtype, context)
    return _without_zeros(values) if kind == v.IS_DECIMAL and context.dtype == t.STRING else values


def _as_seconds(micros: Int64s) -> pa.Array:
    """Microseconds as decimals in seconds."""
    if (np.abs(micros) >= _EXACT_MICROS).any():
        raise Unsupported("a time of a variant that is centuries away as a decimal is not supported")
    words = np.stack([micros, micros >> 63], axis=1)
    return pa.Array.from_buffers(t.decimal(20, _MICRO_DIGITS), len(micros), [None, pa.py_buffer(words)])


def _try_cast(source: pa.Array, dtype: pa.DataType, context: CallContext) -> pa.Array:
    """The values as TRY_CAST gives them."""
    done = cast(Vector(source.type, source), dtype, EvalMode.TRY, context.tz, len(source))
    return Vector(dtype, done.data).array(len(source))


def _without_zeros(strings: pa.Array) -> pa.Array:
    """Decimals as strings without zeros at their ends, as Spark keeps decimals of variants without them."""
    return pc.replace_substring_regex(pc.replace_substring_regex(strings, _WHOLE, ""), _ENDING_ZEROS, r"\1")


def _seconds(found: PathValues, kind: int, rows: Int64s) -> pa.Array:
    """Numbers of seconds as microseconds; NULL where these overflow."""
    digits = found.lows[rows]
    scale = int(found.sizes[rows[0]]) if kind == v.IS_DECIMAL else 0
    if kind == v.IS_DECIMAL and ((found.highs[rows] != digits >> 63) | (digits == INT64_MIN)).any():
        raise Unsupported("a decimal of more than 18 digits of a variant as a timestamp is not supported")
    if scale > _MICRO_DIGITS:
        divisor = 10 ** min(scale - _MICRO_DIGITS, _MAX_DIGITS)
        return pa.array(np.where(digits < 0, -(-digits // divisor), digits // divisor))
    factor = 10 ** (_MICRO_DIGITS - scale)
    is_too_much = (digits > INT64_MAX // factor) | (digits < -(INT64_MAX // factor))
    return pa.array(np.where(is_too_much, 0, digits) * factor, mask=is_too_much)


def _fractional_seconds(found: PathValues, kind: int, rows: Int64s) -> pa.Array:
    """Convert fractional seconds to microseconds; like Spark, it compares with the limits as doubles."""
    micros = (
        _READERS[kind](found, rows).to_numpy(zero_copy_only=False).astype(np.float64) * 10.0**_MICRO_DIGITS
    )
    is_too_much = ~(np.abs(micros) <= _TWO_63)
    whole = np.where(is_too_much | (micros == _TWO_63), 0, micros).astype(np.int64)
    return pa.array(np.where(micros == _TWO_63, INT64_MAX, whole), mask=is_too_much)


def _decimals(found: PathValues, rows: Int64s) -> pa.Array:
    words = np.empty((len(rows), 2), np.int64)
    words[:, 0], words[:, 1] = found.lows[rows], found.highs[rows]
    scale = int(found.sizes[rows[0]])
    return pa.Array.from_buffers(t.decimal(38, scale), len(rows), [None, pa.py_buffer(words)])


def _uuids(found: PathValues, rows: Int64s) -> pa.Array:
    """UUIDs as strings of 36 characters."""
    given = found.raw[found.starts[rows][:, None] + np.arange(16)]
    digits = np.empty((len(rows), 32), np.uint8)
    digits[:, ::2], digits[:, 1::2] = _HEX[given >> 4], _HEX[given & 15]
    strings = np.insert(digits, _DASHES, ord("-"), axis=1)
    bounds = np.arange(len(rows) + 1, dtype=np.int32) * strings.shape[1]
    return pa.Array.from_buffers(
        t.STRING, len(rows), [None, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(strings))]
    )


_READERS: dict[int, Callable[[PathValues, Int64s], pa.Array]] = {
    v.IS_BOOL: lambda found, rows: pa.array(found.lows[rows] != 0),
    v.IS_LONG: lambda found, rows: pa.array(found.lows[rows]),
    v.IS_DOUBLE: lambda found, rows: pa.array(found.lows[rows].view(np.float64)),
    v.IS_FLOAT: lambda found, rows: pa.array(found.lows[rows].astype(np.int32).view(np.float32)),
    v.IS_DECIMAL: _decimals,
    v.IS_DATE: lambda found, rows: pa.array(found.lows[rows].astype(np.int32)).view(t.DATE),
    v.IS_TIMESTAMP: lambda found, rows: pa.array(found.lows[rows]).view(t.timestamp("UTC")),
    v.IS_TIMESTAMP_NTZ: lambda found, rows: pa.array(found.lows[rows]).view(t.TIMESTAMP_NTZ),
    v.IS_STRING: lambda found, rows: found.slices(rows, t.STRING),
    v.IS_BINARY: lambda found, rows: found.slices(rows, t.BINARY),
    v.IS_UUID: _uuids,
    v.IS_OBJECT: PathValues.strings,
    v.IS_ARRAY: PathValues.strings,
}
_INSTANTS: dict[int, Callable[[PathValues, int, Int64s], pa.Array]] = {
    v.IS_LONG: _seconds,
    v.IS_DECIMAL: _seconds,
    v.IS_DOUBLE: _fractional_seconds,
    v.IS_FLOAT: _fractional_seconds,
}
