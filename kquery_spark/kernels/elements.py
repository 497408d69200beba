"""The elements of the lists of a batch, all at once: where they are, their values, and their order.

Elements are compared by **codes**: the rank of each value among the distinct ones in Spark's order (NaN last,
-0.0 as 0.0), so that functions of arrays are integer arithmetic over all elements of a batch.
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
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import Int64s

Mask = npt.NDArray[np.bool_]
_MAX_ELEMENTS = 100_000_000


def is_array(dtype: pa.DataType) -> bool:
    """Whether the type is an array (maps are lists to Arrow)."""
    return bool(pa.types.is_list(dtype)) and not pa.types.is_map(dtype)


def element_of(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """The types of an array and a value: a whole number becomes one of the array's kind where that is wider."""
    element = types[0].value_type if is_array(types[0]) else types[0]
    if types[1] == t.NULL:
        return [types[0], element]
    widens = t.is_integral(element) and t.is_integral(types[1]) and types[1].bit_width < element.bit_width
    return [types[0], element if widens else types[1]]


@dataclass(frozen=True)
class Elements:
    """The elements of all rows, one after the other: how many each row has, the row of each, and their values."""

    sizes: Int64s
    rows: Int64s
    values: pa.Array
    nulls: Mask

    @property
    def starts(self) -> Int64s:
        """Where the elements of each row begin."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def order(self) -> Int64s:
        """The position of each element in its row, from 0."""
        return np.arange(len(self.rows)) - np.repeat(self.starts, self.sizes)

    def at(self, rows: Int64s, order: Int64s) -> pa.Array:
        """The elements at the places ``order`` of ``rows``, NULL behind the end of an array."""
        missing = order >= self.sizes[rows]
        return self.values.take(pa.array(np.where(missing, 0, self.starts[rows] + order), mask=missing))


def bounds(array: pa.Array) -> tuple[Int64s, Int64s]:
    """First and last (exclusive) position of each row's elements in the child; an empty range where NULL."""
    offsets = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    begins, ends = offsets[:-1], offsets[1:]
    if array.null_count:
        ends = np.where(np.asarray(array.is_null().to_numpy(zero_copy_only=False)), begins, ends)
    return begins, ends


def elements(array: pa.Array, child: pa.Array | None = None) -> Elements:
    """The elements of a list array (or those of ``child`` at the same positions), without those behind NULL."""
    begins, ends = bounds(array)
    sizes = ends - begins
    nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)
    starts = np.cumsum(sizes) - sizes
    positions = np.repeat(begins - starts, sizes) + np.arange(int(sizes.sum()))
    values = (array.values if child is None else child).take(pa.array(positions))
    return Elements(sizes, np.repeat(np.arange(len(array)), sizes), values, nulls)


def element_places(sizes: Int64s) -> tuple[Int64s, Int64s]:
    """The row of each element of arrays of these sizes, and its place in the row's array, from 0."""
    rows = np.repeat(np.arange(len(sizes)), sizes)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def of_type(values: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Values as another type, which differs in what can be NULL within them, or of which all are NULL."""
    if values.type == dtype:
        return values
    return pa.nulls(len(values), dtype) if values.type == t.NULL else relabeled(values, dtype)


def of_one_type(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Two arrays of values as one type, in which all parts may be NULL where theirs differ in that."""
    if left.type == right.type:
        return left, right
    dtype = t.nullable_within(right.type if left.type == t.NULL else left.type)
    return of_type(left, dtype), of_type(right, dtype)


def structs(columns: Sequence[pa.Array], dtype: pa.DataType, present: pa.Array) -> pa.Array:
    """Structs of columns that have a value for each row that is ``present``; NULL in the other rows."""
    fields = list(dtype)
    values = [of_type(column, field.type) for column, field in zip(columns, fields, strict=True)]
    array = pa.StructArray.from_arrays(values, fields=fields)
    if len(array) == len(present):
        return array
    flags = np.asarray(present.to_numpy(zero_copy_only=False), np.bool_)
    return array.take(pa.array(np.cumsum(flags) - 1, mask=~flags))


def listed(values: pa.Array, positions: Int64s, sizes: Int64s, mask: Mask, dtype: pa.DataType) -> pa.Array:
    """A list array of the values at ``positions``, ``sizes`` a row."""
    reserve_gather([values], positions)
    return list_array(values.take(pa.array(positions)), sizes, mask, dtype)


def list_array(values: pa.Array, sizes: Int64s, mask: Mask, dtype: pa.DataType) -> pa.Array:
    """A list array of values that lie one after the other, ``sizes`` a row."""
    offsets = pa.array(list_offsets(sizes, mask))
    values = of_type(values, dtype.value_type)
    return pa.ListArray.from_arrays(offsets, values, type=dtype, mask=pa.array(mask))


def list_offsets(sizes: Int64s, mask: Mask) -> npt.NDArray[np.int32]:
    """Where the elements of each row begin and the last ones end; rows that are NULL have none."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.where(mask, 0, sizes), out=offsets[1:])
    if offsets[-1] >= 2**31:
        raise MemoryError("a batch of arrays or maps grew past 2^31 elements")
    return offsets.astype(np.int32)


def codes(values: pa.Array) -> Int64s:
    """The rank of each value among the distinct ones in Spark's order; -1 for NULL."""
    dtype = values.type
    nulls = np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)
    if t.is_fractional(dtype):
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
    """Raise Unsupported for more elements than a batch may get."""
    if size > _MAX_ELEMENTS:
        raise Unsupported(f"arrays of more than {_MAX_ELEMENTS} elements in a batch are not supported")
