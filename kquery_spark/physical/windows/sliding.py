"""Aggregates a range of rows, such as a window frame, for every row at the same time.

The idea is that of a sparse table. Blocks of 2, 4, 8, ... rows are computed for all start positions, each size from the size
before with one vectorized step. A range is the concatenation of blocks whose sizes are the binary digits of its length.
Example: the range of rows 3 to 15 (13 rows, binary 1101) consists of the block of 1 row at 3, the block of 4 rows at 4, and
the block of 8 rows at 8. That takes log2(longest range) steps for all rows together.

The alternative, differences of prefix sums, would be faster. But it loses precision by cancellation, a NaN or infinity would
spread to all later rows, and it does not work for minimum and maximum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.functions.registry import CallContext
from kquery_spark.physical.aggregates import Accumulator
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.physical.pairs import PAIR_BYTES, max_pairs, pair_slices
from kquery_spark.run_control import check_run
from kquery_spark.types.batch import concat_arrays
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.vector import Int64s, Vector

_MAX_RUN_RATIO = 2  # running sums are used if they add at most this many values per row of the input
# Sums in order are computed value by value up to this average number of additions per row.
_MAX_ADDITIONS_PER_ROW = 64
_LONG_FRAME_ROWS = 512


def fold_ranges(values: np.ndarray, low: Int64s, high: Int64s, fold: np.ufunc, neutral: Any) -> np.ndarray:
    """Return ``fold`` of ``values[low:high]`` for each row; ``neutral`` for empty ranges."""
    lengths = high - low
    result = np.full(len(low), neutral, values.dtype)
    block_starts = low.copy()
    block, size = values, 1
    longest = int(lengths.max(initial=0))
    with np.errstate(all="ignore"):
        while size <= longest:
            rows = np.flatnonzero(lengths & size)
            result[rows] = fold(result[rows], block[block_starts[rows]])
            block_starts[rows] += size
            if 2 * size <= longest:
                # block[i] covers rows i to i + size - 1; combined with block[i + size] it covers twice as many
                block = fold(block[: len(block) - size], block[size:])
            size *= 2
    return result


def sums_in_order(values: np.ndarray, low: Int64s, high: Int64s) -> np.ndarray:
    """Return the sums of ``values[low:high]`` for each row, added from first to last like in Spark where that is affordable.

    The order of additions decides the last digits of floats. There are three cases:
    1. Frames that only grow (UNBOUNDED PRECEDING to CURRENT ROW): rows with the same start form a run, and one running sum
       per run gives all results.
    2. Short frames that slide: values are added one by one, as many times as the longest frame has rows.
    3. Long frames that slide, or that reach to the end: adding in order would take a number of additions that is quadratic
       in the number of rows, so they are added pairwise (``fold_ranges``), and the last digits may differ from Spark's.
    """
    lengths = high - low
    if not len(lengths):
        return np.zeros(0, values.dtype)
    firsts = np.flatnonzero(np.diff(low, prepend=-1))
    starts, ends = low[firsts], np.maximum.reduceat(high, firsts)
    if int((ends - starts).sum()) <= _MAX_RUN_RATIO * len(values):
        return _running_sums(
            values, starts, ends, np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(low))), high
        )
    if not are_short(low, high):
        return fold_ranges(values, low, high, np.add, 0.0)
    result = np.zeros(len(low), values.dtype)
    with np.errstate(all="ignore"):
        for offset in range(int(lengths.max())):
            rows = np.flatnonzero(lengths > offset)
            result[rows] += values[low[rows] + offset]
    return result


def are_short(low: Int64s, high: Int64s) -> bool:
    """Return whether frames have few enough rows to add their values one by one."""
    lengths = high - low
    few = int(lengths.sum()) <= _MAX_ADDITIONS_PER_ROW * len(lengths)
    return few and int(lengths.max(initial=0)) <= _LONG_FRAME_ROWS


def _running_sums(values: np.ndarray, starts: Int64s, ends: Int64s, run: Int64s, high: Int64s) -> np.ndarray:
    """Return for each row the sum from the start of its run to ``high``.

    run: the index of each row's run. starts, ends: the runs ``values[start:end]``, which hardly overlap. They are copied one
    after the other into ``added``, where each becomes its running sum: long runs by ``cumsum`` one at a time, short runs all
    together, position by position.
    """
    lengths = np.maximum(ends - starts, 0)
    places = np.cumsum(lengths) - lengths
    added = values[np.repeat(starts - places, lengths) + np.arange(int(lengths.sum()))]
    with np.errstate(all="ignore"):
        sizes = np.minimum(lengths, _LONG_FRAME_ROWS + 1)
        # numpy uses a fast radix sort for 16-bit integers.
        order = np.argsort(-sizes.astype(np.int16), kind="stable")
        long = int(np.searchsorted(-sizes[order], -_LONG_FRAME_ROWS))
        for index in order[:long]:
            part = added[places[index] : places[index] + lengths[index]]
            np.cumsum(part, out=part)
        short = order[long:]
        sizes = lengths[short]
        # Short runs are in descending order of length, so the runs that have a value at `offset` are a prefix of them.
        for offset in range(1, int(sizes[0]) if len(sizes) else 0):
            rows = places[short[: int(np.searchsorted(-sizes, -offset))]] + offset
            added[rows] += added[rows - 1]
        added += 0.0  # a sum starts at 0.0, so it is never -0.0
    filled = high > starts[run]
    return np.where(
        filled, added[np.where(filled, places[run] + high - starts[run] - 1, 0)] if len(added) else 0.0, 0.0
    )


def prefix_counts(flags: np.ndarray) -> Int64s:
    """Return the sum of the values before each row, and the total as one more entry. Sums of flags are counts."""
    counts = np.zeros(len(flags) + 1, np.int64)
    np.cumsum(flags, out=counts[1:])
    return counts


def merge_ranges(
    accumulate: Accumulator,
    states: list[Vector],
    nothing: list[Vector],
    low: Int64s,
    high: Int64s,
    context: CallContext,
) -> list[Vector]:
    """Return the merged aggregate state of the rows ``low:high`` for each row, by the method of ``fold_ranges``.

    states: one state per row. nothing: the state of an empty range.
    """
    n = len(low)
    lengths = high - low
    block_starts = low.copy()
    longest = int(lengths.max(initial=0))
    none = np.zeros(n, np.int64)
    result = [_take(v, none) for v in nothing]
    block, size = states, 1
    while size <= longest:
        check_run()
        rows = np.flatnonzero(lengths & size)
        if len(rows):
            pair = [_take(v, rows) for v in result], [_take(v, block_starts[rows]) for v in block]
            merged = merge_pairs(accumulate, *pair, context)
            back = np.arange(n, dtype=np.int64)
            back[rows] = n + np.arange(len(rows))
            result = [
                _take(Vector(v.dtype, concat_arrays(v.dtype, [v.data, m.data])), back)
                for v, m in zip(result, merged, strict=True)
            ]
            block_starts[rows] += size
        if 2 * size <= longest:
            left = len(block[0].data) - size
            halves = [
                [Vector(v.dtype, v.data.slice(0, left)) for v in block],
                [Vector(v.dtype, v.data.slice(size, left)) for v in block],
            ]
            block = merge_pairs(accumulate, halves[0], halves[1], context)
        size *= 2
    return result


def merge_pairs(
    accumulate: Accumulator, left: list[Vector], right: list[Vector], context: CallContext
) -> list[Vector]:
    """Merge the state at row i of the left side with that at row i of the right side, in this order."""
    n = len(left[0].data)
    ids = np.arange(n, dtype=np.int64)
    both = [
        Vector(a.dtype, concat_arrays(a.dtype, [a.data, b.data])) for a, b in zip(left, right, strict=True)
    ]
    groups = Groups(np.concatenate([ids, ids]), n, ids)
    return accumulate.merge(both, groups, CallContext(context.dtype, context.mode, context.tz, 2 * n))


def _take(vector: Vector, rows: Int64s) -> Vector:
    return Vector(vector.dtype, vector.data.take(pa.array(rows)))


def frame_pairs(low: Int64s, high: Int64s) -> Iterator[tuple[int, int, Int64s, Int64s]]:
    """Expand the frames ``low:high`` of rows to pairs of a row and a row in its frame, for a slice of rows at a time.

    Yields start and stop of the slice, and for each pair the index of its row within the slice and the row of the frame. A
    slice has at most MAX_PAIRS pairs, or a single row. Example: the frames 0:1, 0:2 and 1:3 give the slice 0, 3 with the
    rows 0, 1, 1, 2, 2 and the frame rows 0, 0, 1, 1, 2.
    """
    lengths = high - low
    for start, stop in pair_slices(lengths, max_pairs()):
        check_run()
        size = lengths[start:stop]
        reserve_rows(int(size.sum()), PAIR_BYTES)
        owner = np.repeat(np.arange(stop - start, dtype=np.int64), size)
        within = np.arange(len(owner), dtype=np.int64) - np.repeat(np.cumsum(size) - size, size)
        yield start, stop, owner, np.repeat(low[start:stop], size) + within
