"""Arguments and results of functions of single rows (``@udf``), which Spark pickles.

Spark unpickles a value to a Java object and takes it as the announced type if its class is one that Spark expects of the
type; of any other class it makes NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import KQueryError
from kquery_spark.spark_bridge.pyspark_names import PythonEvalType
from kquery_spark.types import names as t

PICKLED = int(PythonEvalType.SQL_BATCHED_UDF)
"""The evaluation type of ``@udf`` without Arrow."""
_NONE = type(None)
# Classes of which the Java object that Spark unpickles is known.
_KNOWN = frozenset({_NONE, bool, int, float, str, Decimal})
_INTEGERS = (t.BYTE, t.SHORT, t.INT, t.LONG)
_FLOATS = (t.FLOAT, t.DOUBLE)
_DIGITS = Context(prec=200, rounding=ROUND_HALF_UP)
_PLAIN = (t.BOOL, *_INTEGERS, *_FLOATS, t.STRING)


def is_supported(dtype: pa.DataType) -> bool:
    """Whether the engine converts arguments and results of a type exactly as Spark does."""
    return dtype in _PLAIN or t.is_decimal(dtype) or pa.types.is_date32(dtype)


def row_values(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows of the arguments, as functions get them."""
    if not batch.num_columns:
        return repeat((), batch.num_rows)
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def result_array(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """The values of a function converted as Spark does; KQueryError for values whose conversion only Spark knows."""
    classes = set(map(type, values))
    if not classes <= _KNOWN:
        names = ", ".join(sorted(c.__name__ for c in classes - _KNOWN))
        raise KQueryError(f"only Spark can convert values of {names}")
    if dtype == t.BOOL:
        return pa.array(_only(bool, values, classes), t.BOOL)
    if dtype in _INTEGERS or pa.types.is_date32(dtype):
        return _integers(_only(int, values, classes), dtype)
    if dtype in _FLOATS:
        return pa.array(_only(float, values, classes), t.DOUBLE).cast(dtype, safe=False)
    if dtype == t.STRING:
        return _texts(values, classes)
    return pa.array([_rounded(v, dtype) for v in _only(Decimal, values, classes)], dtype)


def _only(cls: type, values: Sequence[Any], classes: set[type]) -> Sequence[Any]:
    """The values of a class; None in place of others."""
    return values if classes <= {cls, _NONE} else [v if type(v) is cls else None for v in values]


def _integers(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """Integers cut to the type's bits; those of more than 64 are of another Java class, and NULL."""
    try:
        wide = pa.array(values, t.LONG)
    except (OverflowError, pa.ArrowInvalid):
        fitting = [v if v is None or -(1 << 63) <= v < 1 << 63 else None for v in values]
        wide = pa.array(fitting, t.LONG)
    if pa.types.is_date32(dtype):
        days = pc.if_else(_fits_days(wide), wide, None)
        return days.cast(pa.int32()).cast(dtype)
    return wide.cast(dtype, safe=False)


def _fits_days(values: pa.Array) -> pa.Array:
    """Days are a Java integer of 32 bits; a longer one is NULL."""
    low, high = pa.scalar(-(1 << 31), t.LONG), pa.scalar((1 << 31) - 1, t.LONG)
    return pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))


def _texts(values: Sequence[Any], classes: set[type]) -> pa.Array:
    """Java's text of any value; of fractions and decimals only Java knows it."""
    if classes <= {str, _NONE}:
        return pa.array(values, t.STRING)
    if not classes <= {str, int, bool, _NONE}:
        raise KQueryError("only Spark knows the text of fractions that a function gives as a string")
    return pa.array([_text(v) for v in values], t.STRING)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if type(value) is bool else str(value)


def _rounded(value: Decimal | None, dtype: pa.DataType) -> Decimal | None:
    """A decimal at the type's scale; KQueryError where it does not fit, for which Spark has an answer of its own."""
    if value is None:
        return None
    if not value.is_finite():
        raise KQueryError("only Spark can convert decimals that are not finite")
    rounded = value.quantize(Decimal(1).scaleb(-dtype.scale, _DIGITS), context=_DIGITS)
    if len(rounded.as_tuple().digits) > dtype.precision:
        raise KQueryError(f"{value} does not fit {t.spark_name(dtype)}")
    return rounded
