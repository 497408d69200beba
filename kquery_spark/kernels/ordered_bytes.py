"""Encodes nested values as byte strings that compare exactly as Spark compares the values.

So operators that group, join, sort and compare flat values can handle structs and arrays, too. The encoding of a nested
part is the byte 1 if it is NULL, which sorts first, or the byte 2 followed by its value:

- numbers are big-endian with the sign bit flipped (-0.0 as 0.0, and one NaN, which is above infinity);
- strings and binaries end with 00 01, and a zero byte in them becomes 00 FF, so that a prefix sorts first;
- a struct is the concatenation of its fields;
- an array is the concatenation of its elements and a byte 0, so that a shorter array sorts first.

For example, the tinyint array ``[1, NULL]`` is 02 80 00 00 00 00 00 00 01, 01, 00.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.text import if_else, replace_all
from kquery_spark.types import names as t
from kquery_spark.types.vector import decimal_words

_NULL = b"\x01"
_PRESENT = b"\x02"
_END = b"\x00"
_STRING_END = b"\x00\x01"


def can_order(dtype: pa.DataType) -> bool:
    """Return True if values of the type can be encoded: all types but maps, which Spark does not order either."""
    if pa.types.is_map(dtype):
        return False
    if pa.types.is_struct(dtype):
        return all(can_order(field.type) for field in dtype)
    return can_order(dtype.value_type) if pa.types.is_list(dtype) else True


def ordered_bytes(array: pa.Array) -> pa.Array:
    """Encode each value; NULL stays NULL. ``array`` must not be dictionary-encoded or narrowed."""
    if not can_order(array.type):
        raise Unsupported(f"comparing values of type {t.spark_name(array.type)} is not supported")
    encoded = _values(array)
    return if_else(array.is_valid(), encoded, pa.scalar(None, pa.binary())) if array.null_count else encoded


def _nested_part(array: pa.Array) -> pa.Array:
    """Encode values inside of other values, with a first byte that distinguishes NULL."""
    if pa.types.is_null(array.type):
        return pa.repeat(pa.scalar(_NULL, pa.binary()), len(array))
    encoded = pc.binary_join_element_wise(pa.scalar(_PRESENT, pa.binary()), _values(array), b"")
    return (
        pc.if_else(array.is_valid(), encoded, pa.scalar(_NULL, pa.binary())) if array.null_count else encoded
    )


def _values(array: pa.Array) -> pa.Array:
    """Encode values without the byte for NULL. The result has no NULL; rows that are NULL have arbitrary bytes."""
    dtype = array.type
    if pa.types.is_struct(dtype):
        if not len(dtype):
            return pa.repeat(pa.scalar(b"", pa.binary()), len(array))
        parts = [_nested_part(pc.struct_field(array, [i])) for i in range(len(dtype))]
        return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, b"")
    if pa.types.is_list(dtype):
        return _lists(array)
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        plain = array.cast(pa.binary()).fill_null(b"")
        marked = replace_all(plain, b"\x00", b"\x00\xff")
        return pc.binary_join_element_wise(marked, pa.scalar(_STRING_END, pa.binary()), b"")
    return _fixed_width_binary(_big_endian(array))


def _lists(array: pa.Array) -> pa.Array:
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(array) else (0, 0)
    elements = _nested_part(array.values.slice(first, last - first))
    list_offsets = pa.array((offsets - first).astype(np.int32)) if len(array) else pa.array([0], pa.int32())
    concatenated = pc.binary_join(pa.ListArray.from_arrays(list_offsets, elements), b"")
    return pc.binary_join_element_wise(concatenated, pa.scalar(_END, pa.binary()), b"")


def _big_endian(array: pa.Array) -> Any:
    """Convert fixed-width values to big-endian unsigned integers that have the order of the values."""
    dtype = array.type
    if pa.types.is_decimal(dtype):
        low, high = decimal_words(array).T
        signed = (high ^ np.int64(-(2**63))).view(np.uint64)
        return np.ascontiguousarray(np.column_stack([signed, low.view(np.uint64)]).astype(">u8"))
    if dtype == t.BOOL:
        return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), np.uint8)
    if t.is_fractional(dtype):
        values = array.cast(t.DOUBLE).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        # Doubles order like sign-magnitude integers: flip all bits of negative ones, only the sign bit of the others.
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
        return np.where(bits < 0, ~bits, bits ^ np.int64(-(2**63))).view(np.uint64).astype(">u8")
    if not (t.is_integral(dtype) or pa.types.is_temporal(dtype)):
        raise Unsupported(f"comparing nested values of type {t.spark_name(dtype)} is not supported")
    if pa.types.is_temporal(dtype):
        array = array.view(t.INT) if dtype == t.DATE else array.view(t.LONG)
    values = array.cast(t.LONG).fill_null(0).to_numpy(zero_copy_only=False)
    return (values ^ np.int64(-(2**63))).view(np.uint64).astype(">u8")


def _fixed_width_binary(values: Any) -> pa.Array:
    width = values.itemsize * (values.shape[1] if values.ndim == 2 else 1)
    fixed = pa.Array.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(values.tobytes())])
    return fixed.cast(pa.binary())


def normalize_zeros(array: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0 at every depth, as Spark does with grouping keys."""
    dtype = array.type
    if not has_floats(dtype):
        return array
    if t.is_fractional(dtype):
        return pc.add(array, pa.scalar(0.0, dtype))
    missing = array.is_null() if array.null_count else None
    if pa.types.is_struct(dtype):
        parts = [normalize_zeros(pc.struct_field(array, [i])) for i in range(len(dtype))]
        return pa.StructArray.from_arrays(parts, fields=list(dtype), mask=missing)
    list_offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    elements = normalize_zeros(
        array.values.slice(int(list_offsets[0]), int(list_offsets[-1] - list_offsets[0]))
    )
    offsets = pa.array((list_offsets - list_offsets[0]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, elements, type=dtype, mask=missing)


def has_floats(dtype: pa.DataType) -> bool:
    """Return True if the type is or contains a float or double."""
    if pa.types.is_struct(dtype):
        return any(has_floats(field.type) for field in dtype)
    if pa.types.is_list(dtype) and not pa.types.is_map(dtype):
        return has_floats(dtype.value_type)
    return t.is_fractional(dtype)
