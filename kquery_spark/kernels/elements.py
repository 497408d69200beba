"""Vectorized access to the elements of all lists of a batch: their positions, values and order.

Elements are compared by their **ranks** among the distinct values in Spark's order (NaN last, -0.0 equal to 0.0), so that
array functions are integer arithmetic over all elements of a batch. For example, the arrays ``["b", "a"]`` and
``["c", "a"]`` have the element ranks 1, 0, 2, 0 in rows 0, 0, 1, 1; sorting both arrays means sorting pairs (row, rank).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.ordered_bytes import ordered_bytes
from kquery_spark.types import names as t
from kquery_spark.types.labels import relabeled
from kquery_spark.types.sizes import check_elements, reserve_gather, reserve_rows
from kquery_spark.types.vector import Int64s

Mask = npt.NDArray[np.bool_]
_MAX_ELEMENTS = 100_000_000
_PLACE_BYTES = 8  # of a row number or a position


def is_array(dtype: pa.DataType) -> bool:
    """Return True for arrays, but not for maps, which are also lists to Arrow."""
    return bool(pa.types.is_list(dtype)) and not pa.types.is_map(dtype)


def coerce_to_element(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Coerce the types of an array and a value: a narrower integer and NULL become the element type."""
    element = types[0].value_type if is_array(types[0]) else types[0]
    if types[1] == t.NULL:
        return [types[0], element]
    widens = t.is_integral(element) and t.is_integral(types[1]) and types[1].bit_width < element.bit_width
    return [types[0], element if widens else types[1]]


@dataclass(frozen=True)
class Elements:
    """The elements of all rows, one after the other.

    sizes: the number of elements of each row. rows: the row of each element. values: the elements. nulls: True for NULL rows
    """

    sizes: Int64s
    rows: Int64s
    values: pa.Array
    nulls: Mask

    @property
    def starts(self) -> Int64s:
        """The position of each row's first element."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def order(self) -> Int64s:
        """The position of each element in its row, from 0."""
        return np.arange(len(self.rows)) - np.repeat(self.starts, self.sizes)

    def at(self, rows: Int64s, order: Int64s) -> pa.Array:
        """Return the elements at the positions ``order`` within ``rows``; NULL after the end of an array."""
        missing = order >= self.sizes[rows]
        return self.values.take(pa.array(np.where(missing, 0, self.starts[rows] + order), mask=missing))


def bounds(array: pa.Array) -> tuple[Int64s, Int64s]:
    """Return the first and last (exclusive) position of each row's elements in the child; an empty range for NULL."""
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    begins, ends = offsets[:-1], offsets[1:]
    if array.null_count:
        ends = np.where(np.asarray(array.is_null().to_numpy(zero_copy_only=False)), begins, ends)
    return begins, ends


def elements(array: pa.Array, child: pa.Array | None = None) -> Elements:
    """Return the elements of a list array, or of ``child`` at the same positions, without elements hidden by NULL rows."""
    begins, ends = bounds(array)
    sizes = ends - begins
    nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)
    child = array.values if child is None else child
    count = int(sizes.sum())
    reserve_rows(count, _PLACE_BYTES)
    if not count or count == int(ends[-1] - begins[0]):
        # No element is hidden, so the elements of all rows follow one another in the child.
        values = child.slice(int(begins[0]) if count else 0, count)
    else:
        starts = np.cumsum(sizes) - sizes
        values = child.take(pa.array(np.repeat(begins - starts, sizes) + np.arange(count)))
    return Elements(sizes, np.repeat(np.arange(len(array)), sizes), values, nulls)


def element_places(sizes: Int64s) -> tuple[Int64s, Int64s]:
    """Return, for arrays of these sizes, the row of each element and its 0-based position within the row."""
    reserve_rows(int(sizes.sum()), _PLACE_BYTES)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def cast_nullability(values: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Cast values to a type that differs only in the nullability of nested fields. The NULL type is cast to any type."""
    if values.type == dtype:
        return values
    return pa.nulls(len(values), dtype) if values.type == t.NULL else relabeled(values, dtype)


def unify_types(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Cast two arrays to one type; where their nullability differs, all nested fields of that type are nullable."""
    if left.type == right.type:
        return left, right
    dtype = t.nullable_within(right.type if left.type == t.NULL else left.type)
    return cast_nullability(left, dtype), cast_nullability(right, dtype)


def structs(columns: Sequence[pa.Array], dtype: pa.DataType, present: pa.Array) -> pa.Array:
    """Build structs from columns that have one value for each row that is ``present``; the other rows are NULL."""
    fields = list(dtype)
    values = [cast_nullability(column, field.type) for column, field in zip(columns, fields, strict=True)]
    array = pa.StructArray.from_arrays(values, fields=fields)
    if len(array) == len(present):
        return array
    flags = np.asarray(present.to_numpy(zero_copy_only=False), np.bool_)
    return array.take(pa.array(np.cumsum(flags) - 1, mask=~flags))


def gather_lists(
    values: pa.Array, positions: Int64s, sizes: Int64s, mask: Mask, dtype: pa.DataType
) -> pa.Array:
    """Build a list array of the values at ``positions``; each row takes the next ``sizes`` of them."""
    reserve_gather([values], positions)
    return list_array(values.take(pa.array(positions)), sizes, mask, dtype)


def list_array(values: pa.Array, sizes: Int64s, mask: Mask, dtype: pa.DataType) -> pa.Array:
    """Build a list array of consecutive values; each row takes the next ``sizes`` of them."""
    offsets = pa.array(list_offsets(sizes, mask))
    values = cast_nullability(values, dtype.value_type)
    return pa.ListArray.from_arrays(offsets, values, type=dtype, mask=pa.array(mask))


def list_offsets(sizes: Int64s, mask: Mask) -> npt.NDArray[np.int32]:
    """Return the offsets of lists of these sizes; rows that are NULL (``mask``) have no elements."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.where(mask, 0, sizes), out=offsets[1:])
    check_elements(int(offsets[-1]))
    return offsets.astype(np.int32)


def value_ranks(values: pa.Array) -> Int64s:
    """Return the rank of each value among the distinct values in Spark's order; -1 for NULL."""
    dtype = values.type
    nulls = np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)
    if t.is_fractional(dtype):
        # np.unique sorts NaN last and counts all NaNs as one value; adding 0.0 turns -0.0 into 0.0.
        plain = values.fill_null(0) if values.null_count else values
        _, ranks = np.unique(plain.to_numpy(zero_copy_only=False) + 0.0, return_inverse=True)
    else:
        if t.is_nested(dtype):
            values = ordered_bytes(values)
        if dtype == t.BOOL:
            values = values.cast(t.BYTE)
        encoded = values.dictionary_encode()
        order = np.asarray(pc.array_sort_indices(encoded.dictionary).to_numpy(), np.int64)
        dictionary_ranks = np.empty(len(order), np.int64)
        dictionary_ranks[order] = np.arange(len(order))
        at = encoded.indices.fill_null(0) if encoded.null_count else encoded.indices
        ranks = (
            dictionary_ranks[np.asarray(at.to_numpy(zero_copy_only=False))]
            if len(order)
            else np.zeros(len(values), np.int64)
        )
    return np.where(nulls, -1, ranks.astype(np.int64))


def check_size(size: int) -> None:
    """Raise Unsupported if a batch would have more than ``_MAX_ELEMENTS`` elements."""
    if size > _MAX_ELEMENTS:
        raise Unsupported(f"arrays of more than {_MAX_ELEMENTS} elements in a batch are not supported")
