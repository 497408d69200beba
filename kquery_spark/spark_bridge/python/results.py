"""Results of Python functions that come as Arrow batches, in the engine's types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import KQueryError
from kquery_spark.types.labels import relabeled


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
    if not _are_one_to_spark(array.type, dtype):
        raise KQueryError(f"a function gave values of {array.type} for {dtype}")
    return relabeled(array, dtype)


def _are_one_to_spark(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether Spark reads two Arrow types as one type of its own."""
    if given == wanted:
        return True
    if pa.types.is_timestamp(wanted):
        zones = pa.types.is_timestamp(given) and (given.tz is None) == (wanted.tz is None)
        return bool(zones and given.unit == wanted.unit)
    if pa.types.is_string(wanted):
        return bool(pa.types.is_large_string(given))
    if pa.types.is_binary(wanted):
        return bool(pa.types.is_large_binary(given))
    if pa.types.is_map(wanted):
        return pa.types.is_map(given) and _are_parts_one(
            [(given.key_field, wanted.key_field), (given.item_field, wanted.item_field)], are_named=False
        )
    if pa.types.is_list(wanted):
        return pa.types.is_list(given) and _are_parts_one(
            [(given.value_field, wanted.value_field)], are_named=False
        )
    if pa.types.is_struct(wanted):
        has_fields = pa.types.is_struct(given) and given.num_fields == wanted.num_fields
        return has_fields and _are_parts_one(list(zip(given, wanted, strict=True)), are_named=True)
    return False


def _are_parts_one(pairs: Sequence[tuple[pa.Field, pa.Field]], are_named: bool) -> bool:
    """Return whether the parts of two types are one to Spark each, also in what may be NULL."""
    return all(
        a.nullable == b.nullable and (a.name == b.name or not are_named) and _are_one_to_spark(a.type, b.type)
        for a, b in pairs
    )
