"""Converts results of ``@udf`` without Arrow, which Python pickles, to the declared types.

Spark unpickles a value to a Java object. If Spark expects the object's class for the declared type, it uses the value;
otherwise the result is NULL. Before that, PySpark's types convert structs to tuples and times to numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import KQueryError
from kquery_spark.spark_bridge.python.pickled_values import Pickling
from kquery_spark.types import names as t

_NONE = type(None)
# Classes with a known Java class, to which Spark unpickles their values.
_KNOWN = frozenset({_NONE, bool, int, float, str, Decimal})
_CONTAINERS: tuple[tuple[Any, frozenset[type]], ...] = (
    (pa.types.is_list, frozenset({list, tuple})),
    (pa.types.is_struct, frozenset({tuple})),
    (pa.types.is_binary, frozenset({bytes, bytearray})),
)
"""Additional classes that Spark accepts for these types."""
_INTEGERS = (t.BYTE, t.SHORT, t.INT, t.LONG)
_FLOATS = (t.FLOAT, t.DOUBLE)
_DIGITS = Context(prec=200, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class PickledResults:
    """Converts results; raises KQueryError for values that only Spark can convert."""

    pickling: Pickling

    def array(self, values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
        """The values of a function converted as Spark does."""
        classes = set(map(type, values))
        accepted = next((accepted for is_kind, accepted in _CONTAINERS if is_kind(dtype)), frozenset[type]())
        if not classes <= _KNOWN | accepted:
            names = ", ".join(sorted(c.__name__ for c in classes - _KNOWN - accepted))
            raise KQueryError(f"only Spark can convert values of {names} to {t.spark_name(dtype)}")
        if not t.is_nested(dtype):
            return _atoms(values, dtype, classes)
        # As in Spark, values of other classes become NULL.
        containers = [value if type(value) in accepted else None for value in values]
        if pa.types.is_struct(dtype):
            return self._structs(containers, dtype)
        return self._lists(containers, dtype)

    def _lists(self, values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
        elements = self._part(
            list(chain.from_iterable(v for v in values if v is not None)), dtype.value_field
        )
        return _with_lengths(values, dtype, elements)

    def _structs(self, values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
        nothing = (None,) * dtype.num_fields
        rows = [nothing if value is None else value for value in values]
        if set(map(len, rows)) - {dtype.num_fields}:
            raise KQueryError("only Spark can convert structs with more or fewer values than fields")
        columns = zip(*rows, strict=True) if rows else ((),) * dtype.num_fields
        missing = values.count(None)
        fields = [self._part(column, field, missing) for column, field in zip(columns, dtype, strict=True)]
        mask = pa.array([value is None for value in values], t.BOOL) if missing else None
        return pa.StructArray.from_arrays(fields, fields=list(dtype), mask=mask)

    def _part(self, values: Sequence[Any], field: pa.Field, missing: int = 0) -> pa.Array:
        """Convert nested values. missing: the number of NULLs among the outer values."""
        array = self.array(values, field.type)
        if not field.nullable and array.null_count > missing:
            raise KQueryError(f"NULL in {field.name}, which must not be NULL")
        return array


def _with_lengths(values: Sequence[Any], dtype: pa.DataType, child: pa.Array) -> pa.Array:
    """Build lists with the lengths of ``values`` (None becomes NULL) from consecutive elements."""
    lengths = [0, *(0 if value is None else len(value) for value in values)]
    offsets = pa.array(np.cumsum(lengths, dtype=np.int64)).cast(pa.int32())
    is_valid = pa.array([value is not None for value in values], t.BOOL)
    nulls = is_valid.false_count
    buffers = [is_valid.buffers()[1] if nulls else None, offsets.buffers()[1]]
    return pa.Array.from_buffers(dtype, len(values), buffers, nulls, 0, [child])


def _atoms(values: Sequence[Any], dtype: pa.DataType, classes: set[type]) -> pa.Array:
    if dtype == t.BOOL:
        return pa.array(_values_of_class(bool, values, classes), t.BOOL)
    if dtype in _INTEGERS or pa.types.is_date32(dtype) or _is_micros(dtype):
        return _integers(_values_of_class(int, values, classes), dtype)
    if dtype in _FLOATS:
        return pa.array(_values_of_class(float, values, classes), t.DOUBLE).cast(dtype, safe=False)
    if dtype == t.STRING:
        return _strings(values, classes)
    if dtype == t.BINARY:
        return pa.array([_binary(value) for value in values], t.BINARY)
    return pa.array([_rounded(v, dtype) for v in _values_of_class(Decimal, values, classes)], dtype)


def _binary(value: Any) -> bytes | None:
    """Convert bytes, or a string to its UTF-8 bytes; NULL for other values."""
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, bytes | bytearray) else None


def _values_of_class(cls: type, values: Sequence[Any], classes: set[type]) -> Sequence[Any]:
    """Replace all values that are not of the class ``cls`` by None. classes: the classes of the values."""
    return values if classes <= {cls, _NONE} else [v if type(v) is cls else None for v in values]


def _integers(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """Truncate integers to the type's bits; integers of more than 64 bits are of another Java class and become NULL."""
    try:
        wide = pa.array(values, t.LONG)
    except (OverflowError, pa.ArrowInvalid):
        fitting = [v if v is None or -(1 << 63) <= v < 1 << 63 else None for v in values]
        wide = pa.array(fitting, t.LONG)
    if pa.types.is_date32(dtype):
        days = pc.if_else(_fits_days(wide), wide, None)
        return days.cast(pa.int32()).cast(dtype)
    return wide.cast(dtype) if _is_micros(dtype) else wide.cast(dtype, safe=False)


def _is_micros(dtype: pa.DataType) -> bool:
    """Return whether Java represents values of the type as microseconds."""
    return dtype == t.DAY_TIME or bool(pa.types.is_timestamp(dtype))


def _fits_days(values: pa.Array) -> pa.Array:
    """Return for each value whether it fits the 32-bit integers in which Java stores days."""
    low, high = pa.scalar(-(1 << 31), t.LONG), pa.scalar((1 << 31) - 1, t.LONG)
    return pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))


def _strings(values: Sequence[Any], classes: set[type]) -> pa.Array:
    """Convert values to strings like Java's ``toString``; raises KQueryError for floats and decimals."""
    if classes <= {str, _NONE}:
        return pa.array(values, t.STRING)
    if not classes <= {str, int, bool, _NONE}:
        raise KQueryError("fractions that a function returns for a column of strings are not supported")
    return pa.array([_text(v) for v in values], t.STRING)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if type(value) is bool else str(value)


def _rounded(value: Decimal | None, dtype: pa.DataType) -> Decimal | None:
    """Round a decimal to the type's scale; raises KQueryError if it does not fit, which Spark handles itself."""
    if value is None:
        return None
    if not value.is_finite():
        raise KQueryError("only Spark can convert decimals that are not finite")
    rounded = value.quantize(Decimal(1).scaleb(-dtype.scale, _DIGITS), context=_DIGITS)
    if len(rounded.as_tuple().digits) > dtype.precision:
        raise KQueryError(f"{value} does not fit {t.spark_name(dtype)}")
    return rounded
