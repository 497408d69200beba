"""Maps Arrow types to Spark types: views, large types and dictionaries become plain, unsigned integers become wider."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.types import names as t
from kquery_spark.types.decimals import MAX_PRECISION

TypeTest = Callable[[pa.DataType], bool]

STRINGS: tuple[TypeTest, ...] = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
LARGE_BINARIES: tuple[TypeTest, ...] = (pa.types.is_large_binary, pa.types.is_binary_view)
BINARIES: tuple[TypeTest, ...] = (pa.types.is_binary, pa.types.is_fixed_size_binary, *LARGE_BINARIES)
LISTS: tuple[TypeTest, ...] = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
UNSIGNED = {
    pa.uint8(): t.SHORT,
    pa.uint16(): t.INT,
    pa.uint32(): t.LONG,
    pa.uint64(): pa.decimal128(20, 0),
}


def is_any(dtype: pa.DataType, tests: tuple[TypeTest, ...]) -> bool:
    """Return whether any of the tests accepts the type."""
    return any(test(dtype) for test in tests)


def spark_column_type(field: pa.Field, tz: str = "UTC") -> pa.DataType:
    """The Spark type of a column; Unsupported, with its name, if it has none."""
    try:
        return spark_type(field.type, tz)
    except Unsupported:
        raise Unsupported(f"the column {field.name} of type {field.type} is not supported") from None


def spark_type(dtype: pa.DataType, tz: str = "UTC") -> pa.DataType:
    """The Spark type of an Arrow type; Unsupported for what has none. ``tz``: the session's time zone."""
    if pa.types.is_dictionary(dtype):
        return spark_type(dtype.value_type, tz)
    if pa.types.is_nested(dtype):
        return _nested_spark_type(dtype, tz)
    if is_any(dtype, STRINGS):
        return t.STRING
    if is_any(dtype, BINARIES):
        return t.BINARY
    if pa.types.is_timestamp(dtype):
        return t.timestamp(tz) if dtype.tz else t.TIMESTAMP_NTZ
    if pa.types.is_time64(dtype) and dtype.unit == "us":
        return t.TIME
    if dtype in UNSIGNED:
        return UNSIGNED[dtype]
    if pa.types.is_decimal(dtype):
        if dtype.precision > MAX_PRECISION:
            raise _no_spark_type(dtype)
        return pa.decimal128(dtype.precision, dtype.scale)
    if dtype in (t.DATE, t.TIME, t.BOOL) or t.is_numeric(dtype):
        return dtype
    raise _no_spark_type(dtype)


def _nested_spark_type(dtype: pa.DataType, tz: str) -> pa.DataType:
    inner = partial(spark_type, tz=tz)
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, inner(f.type), f.nullable) for f in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(inner(dtype.key_type), inner(dtype.item_type))
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return pa.list_(inner(dtype.value_type))
    raise _no_spark_type(dtype)


def _no_spark_type(dtype: pa.DataType) -> Unsupported:
    return Unsupported(f"values of the Arrow type {dtype} are not supported")


def cast_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast a table to a schema.

    Older releases of pyarrow cannot cast a nullable struct field to one that is not nullable. Then the table is cast to
    nullable fields, and the result is reinterpreted with the types of the schema.
    """
    try:
        return table.cast(schema)
    except pa.ArrowTypeError:
        nullable = table.cast(pa.schema([f.with_type(t.nullable_within(f.type)) for f in schema]))
        columns = [
            pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
            for column, field in zip(nullable.columns, schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=schema)
