"""Encodes key columns as integer codes, the basis of grouping and DISTINCT.

Two rows get the same code exactly if Spark groups them together: NULL with NULL, NaN with NaN, -0.0 with 0.0, and strings by
their bytes. Several columns are combined to one int64 like the digits of a number:

    a    b      codes of a (3 values)   codes of b (2 values)   code = a * 2 + b
    10   'x'    0                       0                       0
    12   'y'    2                       1                       5
    10   'y'    0                       1                       1

If the combined codes would exceed int64, they are first replaced by dense numbers of the codes that occur (``compress``).
The groups are then numbered by one of five methods, from the fastest to the most general (``group_rows``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import Unsupported
from kquery_spark.kernels import integer_order
from kquery_spark.kernels.equal_rows import first_equal_rows
from kquery_spark.kernels.hash_index import row_numbers
from kquery_spark.kernels.ordered_bytes import can_order, ordered_bytes
from kquery_spark.physical.dependent_keys import are_determined, comparable_values, may_be_determined
from kquery_spark.types import names as t
from kquery_spark.types.units import INT64_MIN
from kquery_spark.types.vector import Int64s, Vector, slots, validity

_MAX_CARDINALITY = 2**62
_SAMPLE_ROWS = 4096  # the number of first rows that are sampled for the groups
_MAX_SEARCHED_GROUPS = 4  # up to this number of groups that the sample lacks, each is searched by itself
# With at most this number of groups in the sample, it probably has nearly all groups.
_MAX_SAMPLE_GROUPS = 256
_MAX_SCANNED_CODES = 65536  # with more possible codes, the sample is not used to find a few groups
# Up to this number of possible codes, rows are counted by code before groups are numbered.
_MAX_COUNTED_CODES = 4096
# Up to this number of possible codes per row, an array with one entry per code is faster than a hash table.
_MAX_CODES_PER_ROW = 4
# For fewer rows, keys are encoded without testing whether other keys determine them.
_MIN_COMPARED_ROWS = 1024


@dataclass(frozen=True)
class ColumnCodes:
    """One code per row, each from 0 to ``cardinality - 1``. Those of a dictionary may be narrower than int64."""

    values: npt.NDArray[np.signedinteger]
    cardinality: int


@dataclass(frozen=True)
class Codes(ColumnCodes):
    """One int64 code per row, each from 0 to ``cardinality - 1``."""

    values: Int64s


def check_key_type(dtype: pa.DataType) -> None:
    """Raise Unsupported for a type by which the engine cannot group, join or sort."""
    if t.is_nested(dtype) and not can_order(dtype):
        raise Unsupported(f"grouping, joining or sorting by {t.spark_name(dtype)} values is not supported")


def as_integers(vector: Vector) -> pa.Array | None:
    """Return the values as int64 if they are represented by integers; otherwise None.

    Besides integers, these are booleans, dates, timestamps, intervals and narrow decimals.
    """
    dtype, data = vector.dtype, vector.data
    if vector.is_narrow or dtype == t.LONG:
        return data
    if t.is_integral(dtype) or dtype == t.BOOL:
        return data.cast(t.LONG)
    if dtype == t.DATE:
        return data.view(t.INT).cast(t.LONG)
    if t.has_long_counts(dtype):
        return data.view(t.LONG)
    return None


def normalized_bits(data: pa.Array) -> pa.Array:
    """Return the bits of floats as int64, with a single NaN and a single zero. NULLs stay NULL."""
    values = data.cast(t.DOUBLE).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    values = np.where(np.isnan(values), np.nan, values)
    bits = np.ascontiguousarray(values).view(np.int64)
    valid = validity(data)
    return pa.array(bits, mask=None if valid is None else ~valid)


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


def native_integers(vector: Vector) -> pa.Array | None:
    """Return what ``as_integers`` returns, but without widening narrow integers and dates to int64."""
    if vector.dtype == t.DATE:
        return vector.data.view(t.INT)
    return vector.data if t.is_integral(vector.dtype) else as_integers(vector)


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
    if high - low >= _MAX_CARDINALITY or low == INT64_MIN:
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
    codes = indices.fill_null(0).to_numpy(zero_copy_only=False)
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
    codes = pack([encode(Vector(f.type, f)) for f in fields], len(data))
    if codes.cardinality >= _MAX_CARDINALITY // 2:
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


def pack(columns: Sequence[ColumnCodes], num_rows: int) -> Codes:
    """Combine several code columns to one. Codes are compressed if the product of the cardinalities would be too large."""
    if not columns:
        return Codes(np.zeros(num_rows, np.int64), 1)
    # A column with a single code does not distinguish rows. These columns are sorted to the end and skipped.
    packed, *others = sorted(columns, key=lambda c: c.cardinality == 1)
    for column in others:
        if column.cardinality == 1:
            break
        if packed.cardinality * column.cardinality >= _MAX_CARDINALITY:
            packed = compress(packed)
            if packed.cardinality * column.cardinality >= _MAX_CARDINALITY:
                column = compress(column)
        codes = np.multiply(packed.values, np.int64(column.cardinality), dtype=np.int64)
        codes += column.values
        packed = Codes(codes, packed.cardinality * column.cardinality)
    return _widened(packed)


def _widened(codes: ColumnCodes) -> Codes:
    return Codes(codes.values.astype(np.int64, copy=False), codes.cardinality)


def compress(codes: ColumnCodes) -> Codes:
    """Renumber the codes from 0 to the number of distinct codes minus 1. Equal rows stay equal, and sorted codes sorted."""
    wide = _widened(codes)
    groups = _sorted_groups(wide) or _hashed_groups(wide)
    return Codes(groups.ids, max(1, groups.count))


@dataclass(frozen=True)
class Groups:
    """The groups of rows: for each row the number of its group (``ids``, from 0 to ``count - 1``), and their first rows.

    known_sizes: the number of rows of each group, if it was computed with the groups.
    """

    ids: Int64s
    count: int
    first_rows: Int64s
    known_sizes: Int64s | None = None

    @cached_property
    def sizes(self) -> Int64s:
        """The number of rows of each group."""
        return np.bincount(self.ids, minlength=self.count) if self.known_sizes is None else self.known_sizes

    def representatives(self) -> pa.Array:
        """Return the first row of each group, as indices with which to take the key columns."""
        return pa.array(self.first_rows)


def group_rows(keys: Sequence[Vector], num_rows: int) -> Groups:
    """Number the groups of the key columns. Without keys there is exactly one group, even for no rows.

    Strings that the other keys determine are compared instead of encoded (``dependent_keys``). The methods, in this order:

    1. Sorted codes, as in files that were written in the order of the key: each run of equal codes is a group.
    2. A few groups that nearly all occur in the first rows: one lookup per row (``_few_groups``).
    3. Few possible codes: count the rows of each code, and number the codes that occur.
    4. Up to ``_MAX_CODES_PER_ROW`` possible codes per row: find the first row of each code in an array with one entry
       per code, and number the codes that occur (``_direct_groups``).
    5. Otherwise: find the first row of each code in a hash table (``_hashed_groups``).
    """
    if not keys:
        return Groups(np.zeros(num_rows, np.int64), 1, np.zeros(1, np.int64))
    compared = [comparable_values(k, num_rows) for k in keys]
    encoded = [encode(k) for k, values in zip(keys, compared, strict=True) if values is None]
    others = [values for values in compared if values is not None]
    if others and encoded and num_rows >= _MIN_COMPARED_ROWS:
        codes = pack(encoded, num_rows)
        encoded = [codes]
        if may_be_determined(codes.cardinality, num_rows):
            groups = _numbered_groups(codes)
            if are_determined(others, groups.ids, groups.first_rows):
                return groups
            encoded = [Codes(groups.ids, groups.count)]
    encoded += [encode(k) for k, values in zip(keys, compared, strict=True) if values is not None]
    return _numbered_groups(pack(encoded, num_rows))


def _numbered_groups(codes: Codes) -> Groups:
    num_rows = len(codes.values)
    groups = _sorted_groups(codes) or _few_groups(codes)
    if groups is not None:
        return groups
    if codes.cardinality <= _MAX_COUNTED_CODES:
        return _counted_groups(codes)
    if codes.cardinality <= _MAX_CODES_PER_ROW * num_rows:
        return _direct_groups(codes)
    return _hashed_groups(codes)


def _sorted_groups(codes: Codes) -> Groups | None:
    """Group rows whose codes ascend; otherwise None."""
    if not integer_order.is_sorted(codes.values):
        return None
    num_rows = len(codes.values)
    starts = integer_order.run_starts(codes.values)
    sizes = np.diff(starts, append=num_rows)
    return Groups(integer_order.run_ids(starts, num_rows), len(starts), starts, sizes)


def _counted_groups(codes: Codes) -> Groups:
    sizes = np.bincount(codes.values, minlength=codes.cardinality)
    present_codes = np.flatnonzero(sizes)
    ids, count = codes.values, len(present_codes)
    if count < codes.cardinality:
        places = np.zeros(codes.cardinality, np.int64)
        places[present_codes] = np.arange(count)
        ids, sizes = np.take(places, ids), sizes[present_codes]
    return Groups(ids, count, _first_row_of_each_group(ids, count), sizes)


def _direct_groups(codes: Codes) -> Groups:
    """Group rows by an array that first holds the first row of each code, and then the group of each code."""
    table = _scan_first_rows(codes.values, codes.cardinality)
    present_codes = np.flatnonzero(table >= 0)
    firsts = table.take(present_codes).astype(np.int64)
    table[present_codes] = np.arange(len(firsts), dtype=table.dtype)
    return Groups(table.take(codes.values).astype(np.int64), len(firsts), firsts)


def _hashed_groups(codes: Codes) -> Groups:
    """Group rows by a hash table. The groups are numbered in the order of their first rows."""
    first = first_equal_rows(codes.values)
    firsts = np.flatnonzero(first == np.arange(len(first)))
    numbers = np.empty(len(first), np.int64)
    numbers[firsts] = np.arange(len(firsts))
    return Groups(numbers.take(first), len(firsts), firsts)


def _few_groups(codes: Codes) -> Groups | None:
    """Group many rows into few groups, if nearly all groups occur in the first rows; otherwise None.

    The codes of the sample are numbered first, and one lookup per row assigns these numbers. Rows with other codes
    (``late_rows``) must be few; their codes are numbered afterwards. The sizes of the groups are not counted.
    """
    values = codes.values
    if codes.cardinality > _MAX_SCANNED_CODES or len(values) < 4 * _SAMPLE_ROWS:
        return None
    first = _scan_first_rows(values[:_SAMPLE_ROWS], codes.cardinality)
    head_groups = np.flatnonzero(first >= 0)
    if len(head_groups) > _MAX_SAMPLE_GROUPS:
        return None
    group_ids = np.full(codes.cardinality, -1, np.int64)
    group_ids[head_groups] = np.arange(len(head_groups))
    ids = np.take(group_ids, values)
    late_rows = np.flatnonzero(ids < 0) if len(head_groups) < codes.cardinality else head_groups[:0]
    if len(late_rows) > len(values) // _SAMPLE_ROWS + _MAX_SAMPLE_GROUPS:
        return None
    late, at = np.unique(values[late_rows], return_index=True)
    group_ids[late] = np.arange(len(head_groups), len(head_groups) + len(late))
    ids[late_rows] = group_ids[values[late_rows]]
    return Groups(ids, len(head_groups) + len(late), np.concatenate((first[head_groups], late_rows[at])))


def _scan_first_rows(ids: Int64s, count: int) -> npt.NDArray[np.signedinteger[Any]]:
    """Return the first row of each group; -1 for a group without rows.

    The rows are assigned in reverse, because numpy keeps the last of several assignments.
    """
    first = row_numbers(count, len(ids))
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1, dtype=first.dtype)
    return first


def _first_row_of_each_group(ids: Int64s, count: int) -> Int64s:
    """Return the first row of each group. A sample of first rows usually has nearly all groups; others are searched."""
    for rows in (_SAMPLE_ROWS, len(ids)) if len(ids) > _SAMPLE_ROWS else (len(ids),):
        first = _scan_first_rows(ids[:rows], count)
        missing = np.flatnonzero(first < 0)
        if len(missing) <= _MAX_SEARCHED_GROUPS:
            break
    for group in missing:
        first[group] = np.argmax(ids == group)
    return first.astype(np.int64, copy=False)
