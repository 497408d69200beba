"""Encodes key columns as integer codes, the basis of grouping and DISTINCT.

Two rows get the same code exactly if Spark groups them together: NULL with NULL, NaN with NaN, -0.0 with 0.0, and strings by
their bytes. Several columns are combined into one int64 like the digits of a number:

    a    b      codes of a (3 values)   codes of b (2 values)   code = a * 2 + b
    10   'x'    0                       0                       0
    12   'y'    2                       1                       5
    10   'y'    0                       1                       1

If the combined codes would exceed int64, they are first replaced by dense numbers of the codes that occur (``compress``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.kernels.ordered_bytes import ordered_bytes
from kquery_spark.physical.grouping.groups import MAX_CARDINALITY, Codes, ColumnCodes, compress
from kquery_spark.physical.grouping.key_values import check_key_type, native_integers, normalized_bits
from kquery_spark.types import names as t
from kquery_spark.types.units import INT32_MAX, INT64_MIN
from kquery_spark.types.vector import Vector, slots, validity


def encode(vector: Vector) -> ColumnCodes:
    """Return the codes of one key column. NULL has a code of its own."""
    integers = native_integers(vector)
    if integers is not None:
        return _encode_range(integers) or _encode_values(integers)
    check_key_type(vector.dtype)
    if pa.types.is_struct(vector.dtype) and len(vector.dtype):
        return _encode_struct(vector.data)
    if t.is_nested(vector.dtype):
        return _encode_values(ordered_bytes(vector.data))
    if t.is_fractional(vector.dtype):
        return _encode_values(normalized_bits(vector.data))
    if vector.is_dictionary:
        return _encode_dictionary(vector.data)
    if vector.dtype == t.NULL:
        return Codes(np.zeros(len(vector.data), np.int64), 1)
    return _encode_values(vector.plain())


def _encode_range(data: pa.Array) -> Codes | None:
    """Encode integers as offsets from the lowest value. None if the range is too large.

    If the column has NULLs, these get the code 0 and the values start at 1.
    """
    if len(data) == data.null_count:
        return Codes(np.zeros(len(data), np.int64), 1)
    values = slots(data)
    valid = validity(data)
    if valid is None:
        low, high = int(values.min()), int(values.max())
    else:
        ends = pc.min_max(data)
        low, high = ends["min"].as_py(), ends["max"].as_py()
    # ``low - 1``, the value of code 0, must fit into int64.
    if high - low >= MAX_CARDINALITY or low == INT64_MIN:
        return None
    if valid is None:
        codes = (
            values
            if low == 0 and values.dtype == np.int64
            else np.subtract(values, np.int64(low), dtype=np.int64)
        )
        return Codes(codes, high - low + 1)
    codes = np.subtract(values, np.int64(low - 1), dtype=np.int64)
    if data.null_count < len(data) // 16:
        codes[np.flatnonzero(~valid)] = 0
    else:
        np.multiply(codes, valid, out=codes)
    return Codes(codes, high - low + 2)


def _encode_dictionary(data: pa.Array) -> ColumnCodes:
    # A dictionary can contain duplicates, for example after upper() was applied to it.
    distinct = data.dictionary.dictionary_encode("encode")
    indices = data.indices
    codes = (indices.fill_null(0) if indices.null_count else indices).to_numpy(zero_copy_only=False)
    if not np.issubdtype(codes.dtype, np.signedinteger):
        codes = codes.astype(np.int64)
    if len(distinct.dictionary) < len(distinct) or distinct.dictionary.null_count:
        codes = distinct.indices.to_numpy(zero_copy_only=False).astype(np.int64)[codes]
        null_code = _index_of_null(distinct.dictionary)
    else:
        null_code = len(distinct.dictionary)
    cardinality = max(len(distinct.dictionary), null_code + 1)
    valid = validity(indices)
    if valid is not None:
        codes = np.where(valid, codes, np.int64(null_code))  # the indices may be too narrow for this code
    return ColumnCodes(codes, cardinality)


def _index_of_null(dictionary: pa.Array) -> int:
    if not dictionary.null_count:
        return len(dictionary)
    return int(np.flatnonzero(pc.is_null(dictionary).to_numpy(zero_copy_only=False))[0])


def _encode_struct(data: pa.Array) -> Codes:
    """Combine the codes of the fields. A NULL struct gets a code of its own, because it differs from a struct of NULLs."""
    fields = [pc.struct_field(data, [i]) for i in range(data.type.num_fields)]
    codes = pack([encode(Vector(f.type, f)) for f in fields], len(data)).widened()
    if codes.cardinality >= MAX_CARDINALITY // 2:
        codes = compress(codes)
    valid = validity(data)
    if valid is None:
        return codes
    return Codes(np.where(valid, codes.values, codes.cardinality), codes.cardinality + 1)


def _encode_values(data: pa.Array) -> Codes:
    """Encode any column that Arrow can dictionary-encode."""
    encoded = data.dictionary_encode("encode")
    return Codes(
        encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), max(1, len(encoded.dictionary))
    )


def pack(columns: Sequence[ColumnCodes], num_rows: int) -> ColumnCodes:
    """Combine several code columns into one. Compresses codes if the product of the cardinalities is too large.

    The combined codes are int32 if no column is wider and they fit, because narrower codes are processed faster.
    """
    if not columns:
        return Codes(np.zeros(num_rows, np.int64), 1)
    # A column with a single code does not distinguish rows. These columns are sorted to the end and skipped.
    packed, *others = sorted(columns, key=lambda c: c.cardinality == 1)
    for column in others:
        if column.cardinality == 1:
            break
        if packed.cardinality * column.cardinality >= MAX_CARDINALITY:
            packed = compress(packed.widened())
            if packed.cardinality * column.cardinality >= MAX_CARDINALITY:
                column = compress(column.widened())
        cardinality = packed.cardinality * column.cardinality
        is_narrow = cardinality <= INT32_MAX and max(packed.values.itemsize, column.values.itemsize) <= 4
        dtype: Any = np.int32 if is_narrow else np.int64
        codes = np.multiply(packed.values, dtype(column.cardinality), dtype=dtype)
        codes += column.values
        packed = ColumnCodes(codes, cardinality)
    return packed
