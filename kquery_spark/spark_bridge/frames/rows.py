"""Builds the rows of Python values that PySpark's ``collect`` returns, from Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    Row,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    _create_row,
)

_UNCONVERTED_TYPES = (BooleanType, IntegralType, FractionalType, DecimalType, StringType)
_TIMES: dict[type[DataType], pa.DataType] = {
    DateType: pa.int32(),
    TimestampType: pa.int64(),
    TimestampNTZType: pa.int64(),
}


def can_build_rows(schema: StructType) -> bool:
    """Return whether all types can be converted here; nested types, binary and some others must be converted by PySpark."""
    types = [field.dataType for field in schema.fields]
    return bool(types) and all(isinstance(t, _UNCONVERTED_TYPES) or type(t) in _TIMES for t in types)


def rows_of(table: pa.Table, schema: StructType) -> list[Row] | None:
    """Build the rows; None if PySpark has to build them.

    PySpark's types convert dates and times from their internal values, days and microseconds.
    """
    if not can_build_rows(schema):
        return None
    types = [field.dataType for field in schema.fields]
    try:
        columns = [_values(c, t) for c, t in zip(table.columns, types, strict=True)]
    except UnicodeDecodeError:  # the JVM replaces bytes that are not UTF-8
        return None
    names = schema.names
    return [_create_row(names, values) for values in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray, dtype: DataType) -> list[Any]:
    inside = _TIMES.get(type(dtype))
    if inside is None:
        return list(column.to_pylist())
    return [dtype.fromInternal(v) for v in column.cast(inside).to_pylist()]
