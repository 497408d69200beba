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
from kquery_spark.types.batch import concat_arrays
from kquery_spark.types.vector import Int64s, Vector

_PAIRS = 2_000_000


def fold_ranges(values: np.ndarray, low: Int64s, high: Int64s, fold: np.ufunc, neutral: Any) -> np.ndarray:
    """``fold`` of ``values[low:high]`` per row."""
    lengths = high - low
    result = np.full(len(low), neutral, values.dtype)
    place = low.copy()
    block, size = values, 1
    longest = int(lengths.max(initial=0))
    with np.errstate(all="ignore"):
        while size <= longest:
            rows = np.flatnonzero(lengths & size)
            result[rows] = fold(result[rows], block[place[rows]])
            place[rows] += size
            if 2 * size <= longest:
                block = fold(block[: len(block) - size], block[size:])
            size *= 2
    return result


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
    place = low.copy()
    longest = int(lengths.max(initial=0))
    none = np.zeros(n, np.int64)
    result = [_take(v, none) for v in nothing]
    block, size = states, 1
    while size <= longest:
        rows = np.flatnonzero(lengths & size)
        if len(rows):
            pair = [_take(v, rows) for v in result], [_take(v, place[rows]) for v in block]
            merged = merge_pairs(accumulate, *pair, context)
            back = np.arange(n, dtype=np.int64)
            back[rows] = n + np.arange(len(rows))
            result = [
                _take(Vector(v.dtype, concat_arrays(v.dtype, [v.data, m.data])), back)
                for v, m in zip(result, merged, strict=True)
            ]
            place[rows] += size
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
    while start < n:
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _PAIRS, side="right")))
        size = lengths[start:stop]
        owner = np.repeat(np.arange(stop - start, dtype=np.int64), size)
        within = np.arange(len(owner), dtype=np.int64) - np.repeat(np.cumsum(size) - size, size)
        yield start, stop, owner, np.repeat(low[start:stop], size) + within
        start = stop
