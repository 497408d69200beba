"""Limits the pairs of rows that joins and window frames hold in memory at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kquery_spark.run_control import needs_small_batches
from kquery_spark.types.vector import Int64s

MAX_PAIRS = 2_000_000
"""The largest number of pairs of rows that are in memory at once."""
PAIR_BYTES = 48
"""The memory for row numbers per pair while pairs are computed."""
_MAX_BOUNDED_PAIRS = 131_072  # instead of MAX_PAIRS, for runs that must use little memory


def max_pairs() -> int:
    """Return the number of pairs that this run may hold at once."""
    return _MAX_BOUNDED_PAIRS if needs_small_batches() else MAX_PAIRS


def pair_slices(counts: Int64s, limit: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (start, stop) of rows with at most ``limit`` pairs each, or with a single row that has more."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if total <= limit:
        yield 0, len(counts)
        return
    start = 0
    while start < len(counts):
        pairs_before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, pairs_before + limit, side="right")))
        yield start, stop
        start = stop
