"""Converts Arrow results of Python functions to the engine's types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import KQueryError
from kquery_spark.types.labels import relabeled


def checked_results(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of results by position; raises KQueryError for results that only Spark handles."""
    if batch.num_columns != len(schema):
        raise KQueryError(f"only Spark can convert a result of {batch.num_columns} columns to {len(schema)}")
    columns = []
    for array, field in zip(batch.columns, schema, strict=True):
        if not field.nullable and array.null_count:
            raise KQueryError(f"NULL in {field.name}, which must not be NULL")
        columns.append(_as_type(array, field.type))
    return pa.RecordBatch.from_arrays(columns, names=[f"_{i}" for i in range(len(columns))])


def _as_type(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Convert an array to the engine's type, which may differ in names of nested fields, time zone, or offset width."""
    if not _is_same_spark_type(array.type, dtype):
        raise KQueryError(f"a function returned values of {array.type} for {dtype}")
    return relabeled(array, dtype)


def _is_same_spark_type(actual: pa.DataType, expected: pa.DataType) -> bool:
    """Return whether two Arrow types correspond to the same Spark type."""
    if actual == expected:
        return True
    if pa.types.is_timestamp(expected):
        zones = pa.types.is_timestamp(actual) and (actual.tz is None) == (expected.tz is None)
        return bool(zones and actual.unit == expected.unit)
    if pa.types.is_string(expected):
        return bool(pa.types.is_large_string(actual))
    if pa.types.is_binary(expected):
        return bool(pa.types.is_large_binary(actual))
    if pa.types.is_map(expected):
        return pa.types.is_map(actual) and _have_same_spark_types(
            [(actual.key_field, expected.key_field), (actual.item_field, expected.item_field)],
            are_named=False,
        )
    if pa.types.is_list(expected):
        return pa.types.is_list(actual) and _have_same_spark_types(
            [(actual.value_field, expected.value_field)], are_named=False
        )
    if pa.types.is_struct(expected):
        has_fields = pa.types.is_struct(actual) and actual.num_fields == expected.num_fields
        return has_fields and _have_same_spark_types(list(zip(actual, expected, strict=True)), are_named=True)
    return False


def _have_same_spark_types(pairs: Sequence[tuple[pa.Field, pa.Field]], are_named: bool) -> bool:
    """Return whether the parts of two types correspond to the same Spark types, with the same nullability."""
    return all(
        a.nullable == b.nullable
        and (a.name == b.name or not are_named)
        and _is_same_spark_type(a.type, b.type)
        for a, b in pairs
    )
