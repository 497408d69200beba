"""Aggregates that return a bitmap of 32,768 bits: built from bit positions, or the union or intersection of bitmaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels import integer_order
from kquery_spark.kernels.text import build, layout
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Reduction, register_accumulator
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.vector import Int64s, Vector

_BYTES = 4096  # the size of every bitmap in Spark
Bitmaps = npt.NDArray[np.uint8]


def _rows_of(array: pa.Array) -> Bitmaps:
    """Return binary values as rows of a matrix. Longer values are truncated, shorter ones are padded with zeros."""
    offsets, raw = layout(array)
    sizes = np.minimum(np.diff(offsets), _BYTES)
    if len(sizes) and (np.diff(offsets) == _BYTES).all():
        return raw[offsets[0] : offsets[-1]].reshape(-1, _BYTES)
    rows = np.zeros((len(sizes), _BYTES), np.uint8)
    # The position of each copied byte within its value: for the sizes 2 and 3, it is 0 1 0 1 2.
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows[np.repeat(np.arange(len(sizes)), sizes), within] = raw[np.repeat(offsets[:-1], sizes) + within]
    return rows


def _filled(count: int, byte: int) -> Bitmaps:
    """Return ``count`` bitmaps in which every byte is ``byte``."""
    reserve_rows(count, _BYTES)
    return np.full((count, _BYTES), byte, np.uint8)


def _vector(rows: Bitmaps) -> Vector:
    bounds = np.arange(len(rows) + 1, dtype=np.int64) * _BYTES
    return Vector(t.BINARY, build(bounds, rows.reshape(-1), None, t.BINARY))


class BitmapFold(Reduction):
    """Combines the bitmaps of a group by a bitwise operation. start: the byte that is neutral for the operation."""

    def __init__(self, fold: np.ufunc, start: int) -> None:
        self._fold = fold
        self._start = start

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (t.BINARY,)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        data = args[0].filled(context.num_rows).plain()
        ids, rows = reduce.valid_rows(data, groups)
        bitmaps = _rows_of(data if rows is None else data.take(pa.array(rows)))
        return [_vector(self._folded(bitmaps, ids, groups.count))]

    def _folded(self, bitmaps: Bitmaps, ids: Int64s, count: int) -> Bitmaps:
        folded = _filled(count, self._start)
        # ``reduceat`` folds ranges of consecutive rows, so the bitmaps are sorted by group first.
        if len(ids):
            order = integer_order.stable_order(ids)
            ordered = ids[order]
            starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
            folded[ordered[starts]] = self._fold.reduceat(bitmaps[order], starts, axis=0)
        return folded


class BitmapOfPositions(BitmapFold):
    """Builds the bitmap of a group: the bits at its positions are set."""

    def __init__(self) -> None:
        super().__init__(np.bitwise_or, 0)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        data = args[0].physical(context.num_rows)
        ids, rows = reduce.valid_rows(data, groups)
        positions = reduce.take_rows(
            np.asarray(data.fill_null(0).to_numpy(zero_copy_only=False), np.int64), rows
        )
        if ((positions < 0) | (positions >= 8 * _BYTES)).any():
            raise ExecutionError(
                "INVALID_BITMAP_POSITION", f"The position of a bit in a bitmap is from 0 to {8 * _BYTES - 1}."
            )
        bitmaps = _filled(groups.count, 0)
        np.bitwise_or.at(bitmaps, (ids, positions // 8), (1 << (positions % 8)).astype(np.uint8))
        return [_vector(bitmaps)]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        return super().update(states, groups, context)


register_accumulator("bitmap_construct_agg", BitmapOfPositions())
register_accumulator("bitmap_or_agg", BitmapFold(np.bitwise_or, 0))
register_accumulator("bitmap_and_agg", BitmapFold(np.bitwise_and, 255))
