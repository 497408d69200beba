"""Arrow types that differ in labels only: names of nested fields, nullability, time zones, offset widths."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.types import names as t


def relabeled(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Convert an array to a type that differs from its own in labels only; fields of NULL structs become NULL."""
    if array.type.equals(dtype, check_metadata=True):  # check_metadata also compares the names of elements
        return array
    if not t.is_nested(dtype):
        return array.cast(dtype)
    if pa.types.is_struct(dtype):
        children = [relabeled(child, field.type) for child, field in zip(array.flatten(), dtype, strict=True)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(dtype), mask=mask)
    # lists and maps: slices share the child
    child = relabeled(array.values, dtype.field(0).type)
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(dtype, len(array), buffers, array.null_count, array.offset, [child])
