"""Aggregates over a range of rows for every row at once.

A range is put together from blocks of 1, 2, 4 ... rows (its length in binary); blocks of one size for all rows are
made from those of half the size by one vectorized step. That is log2(longest range) steps, and each result is a sum of
few partial results, so nothing cancels and a NaN stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.functions.registry import CallContext
from kquery_spark.physical.aggregates import Accumulator
from kquery_spark.physical.keys import Groups
from kquery_spark.run_control import needs_small_batches
from kquery_spark.types.batch import concat_arrays
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.vector import Int64s, Vector

_MAX_PAIRS = 2_000_000
_MAX_BOUNDED_PAIRS = 131_072  # where the run may use little memory
_GROWING = 2  # frames that only grow have no more rows than this times theirs in all
_MAX_ADDITIONS_PER_ROW = 64  # additions a row, from the first to the last, that are worth their time
_LONG_FRAME_ROWS = 512


def fold_ranges(values: np.ndarray, low: Int64s, high: Int64s, fold: np.ufunc, neutral: Any) -> np.ndarray:
    """``fold`` of ``values[low:high]`` per row."""
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
                block = fold(block[: len(block) - size], block[size:])
            size *= 2
    return result


def sums_in_order(values: np.ndarray, low: Int64s, high: Int64s) -> np.ndarray:
    """Sums of ``values[low:high]`` per row, added from the first to the last, as Spark adds floats.

    Of frames that only grow, and of those that hold few rows. Long ones that slide are added pairwise, as is what follows
    a row: from the first to the last that takes as many additions as there are pairs of rows.
    """
    lengths = high - low
    if not len(lengths):
        return np.zeros(0, values.dtype)
    firsts = np.flatnonzero(np.diff(low, prepend=-1))
    starts, ends = low[firsts], np.maximum.reduceat(high, firsts)
    if int((ends - starts).sum()) <= _GROWING * len(values):
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
    """True if frames hold so few rows that adding these one by one is worth the time."""
    lengths = high - low
    few = int(lengths.sum()) <= _MAX_ADDITIONS_PER_ROW * len(lengths)
    return few and int(lengths.max(initial=0)) <= _LONG_FRAME_ROWS


def _running_sums(values: np.ndarray, starts: Int64s, ends: Int64s, run: Int64s, high: Int64s) -> np.ndarray:
    """The sum from the start of each row's run to ``high``; runs are ``values[start:end]`` and do not overlap much."""
    lengths = np.maximum(ends - starts, 0)
    places = np.cumsum(lengths) - lengths
    added = values[np.repeat(starts - places, lengths) + np.arange(int(lengths.sum()))]
    with np.errstate(all="ignore"):
        sizes = np.minimum(lengths, _LONG_FRAME_ROWS + 1)
        order = np.argsort(-sizes.astype(np.int16), kind="stable")  # which sorts short integers by digits
        long = int(np.searchsorted(-sizes[order], -_LONG_FRAME_ROWS))
        for one in order[:long]:
            part = added[places[one] : places[one] + lengths[one]]
            np.cumsum(part, out=part)
        short = order[long:]
        sizes = lengths[short]
        for offset in range(1, int(sizes[0]) if len(sizes) else 0):
            rows = places[short[: int(np.searchsorted(-sizes, -offset))]] + offset
            added[rows] += added[rows - 1]
        added += 0.0  # a sum starts at 0.0, so it is never -0.0
    filled = high > starts[run]
    return np.where(
        filled, added[np.where(filled, places[run] + high - starts[run] - 1, 0)] if len(added) else 0.0, 0.0
    )


def prefix_counts(flags: np.ndarray) -> Int64s:
    """How many flags are set before each row, with one entry more for the end."""
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
    """States of the rows ``low:high`` for each row, by merging; ``states`` has one entry per row."""
    n = len(low)
    lengths = high - low
    block_starts = low.copy()
    longest = int(lengths.max(initial=0))
    none = np.zeros(n, np.int64)
    result = [_take(v, none) for v in nothing]
    block, size = states, 1
    while size <= longest:
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
    """Row i of the left side merged with row i of the right side, in that order."""
    n = len(left[0].data)
    ids = np.arange(n, dtype=np.int64)
    both = [
        Vector(a.dtype, concat_arrays(a.dtype, [a.data, b.data])) for a, b in zip(left, right, strict=True)
    ]
    groups = Groups(np.concatenate([ids, ids]), n, ids)
    return accumulate.merge(both, groups, CallContext(context.dtype, context.mode, context.tz, 2 * n))


def _take(vector: Vector, rows: Int64s) -> Vector:
    return Vector(vector.dtype, vector.data.take(pa.array(rows)))


def pieces(low: Int64s, high: Int64s) -> Iterator[tuple[int, int, Int64s, Int64s]]:
    """Slices of rows with all their (row, member) pairs: start, stop, which row, which member."""
    lengths = high - low
    ends = np.cumsum(lengths)
    start, n = 0, len(low)
    at_once = _MAX_BOUNDED_PAIRS if needs_small_batches() else _MAX_PAIRS
    while start < n:
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + at_once, side="right")))
        size = lengths[start:stop]
        reserve_rows(int(ends[stop - 1]) - done, 48)
        owner = np.repeat(np.arange(stop - start, dtype=np.int64), size)
        within = np.arange(len(owner), dtype=np.int64) - np.repeat(np.cumsum(size) - size, size)
        yield start, stop, owner, np.repeat(low[start:stop], size) + within
        start = stop
