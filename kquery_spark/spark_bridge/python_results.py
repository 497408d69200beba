"""Results of Python functions that come as Arrow batches, in the engine's types."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import KQueryError


def checked_results(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of results by position; KQueryError for what Spark would answer in a way of its own."""
    if batch.num_columns != len(schema):
        raise KQueryError(f"{batch.num_columns} columns for {len(schema)}, which only Spark knows to read")
    columns = []
    for array, field in zip(batch.columns, schema, strict=True):
        if not field.nullable and array.null_count:
            raise KQueryError(f"NULL in {field.name}, which is not to be NULL")
        columns.append(_as_type(array, field.type))
    return pa.RecordBatch.from_arrays(columns, names=[f"_{i}" for i in range(len(columns))])


def _as_type(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """An array in the engine's type, which may differ by names of nested fields, time zone or offset width."""
    if array.type == dtype:
        return array
    if not _are_one_to_spark(array.type, dtype):
        raise KQueryError(f"a function gave values of {array.type} for {dtype}")
    return array.cast(dtype)


def _are_one_to_spark(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads two Arrow types as one type of its own."""
    if pa.types.is_timestamp(wanted):
        zones = pa.types.is_timestamp(given) and (given.tz is None) == (wanted.tz is None)
        return bool(zones and given.unit == wanted.unit)
    if pa.types.is_string(wanted):
        return bool(pa.types.is_large_string(given))
    if pa.types.is_binary(wanted):
        return bool(pa.types.is_large_binary(given))
    if pa.types.is_map(wanted):
        if not pa.types.is_map(given):
            return False
        pairs = [(given.key_type, wanted.key_type), (given.item_type, wanted.item_type)]
    elif pa.types.is_list(wanted):
        if not (pa.types.is_list(given) or pa.types.is_large_list(given)):
            return False
        pairs = [(given.value_type, wanted.value_type)]
    elif pa.types.is_struct(wanted):
        if not pa.types.is_struct(given) or given.num_fields != wanted.num_fields:
            return False
        pairs = [(given.field(i).type, wanted.field(i).type) for i in range(wanted.num_fields)]
    else:
        return False
    return all(a == b or _are_one_to_spark(a, b) for a, b in pairs)
