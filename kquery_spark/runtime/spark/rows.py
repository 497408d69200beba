"""Rows of Python values from Arrow, as PySpark's ``collect`` gives them."""

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

_AS_IT_IS = (BooleanType, IntegralType, FractionalType, DecimalType, StringType)
_TIMES: dict[type[DataType], pa.DataType] = {
    DateType: pa.int32(),
    TimestampType: pa.int64(),
    TimestampNTZType: pa.int64(),
}


def rows_of(table: pa.Table, schema: StructType) -> list[Row] | None:
    """The rows; None where a column is of a type whose values PySpark makes in the JVM: nested ones, binary and the like.

    Dates and times are made by PySpark's types of what they are inside, days and microseconds.
    """
    columns = [_values(c, f.dataType) for c, f in zip(table.columns, schema.fields, strict=True)]
    if not columns or None in columns:
        return None
    names = schema.names
    return [_create_row(names, values) for values in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray, dtype: DataType) -> list[Any] | None:
    inside = _TIMES.get(type(dtype))
    if inside is not None:
        return [dtype.fromInternal(v) for v in column.cast(inside).to_pylist()]
    if not isinstance(dtype, _AS_IT_IS):
        return None
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:  # the JVM replaces what is no UTF-8
        return None
