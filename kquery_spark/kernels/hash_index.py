"""Tables from distinct int64 values to their positions, in numpy: by hash, or by the value itself where it is small.

Unlike Arrow's ``index_in`` they are built once and probed batch by batch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kquery_spark.types.vector import Int64s

# up to so many values most slots are left free, so that absent values are seen at the first look
_MAX_ROOMY_VALUES = 1 << 16
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def row_numbers(size: int, rows: int) -> npt.NDArray[np.signedinteger]:
    """``size`` empty slots (-1) for any of ``rows`` row numbers: 32 bits wide where that is enough."""
    return np.full(size, -1, np.int32 if rows <= np.iinfo(np.int32).max else np.int64)


class HashIndex:
    """Positions of distinct values; linear probing at a load of at most one half, one eighth for few values."""

    def __init__(self, values: Int64s) -> None:
        self._values = values
        room = 8 if len(values) <= _MAX_ROOMY_VALUES else 2
        bits = max(4, int(room * max(len(values), 1) - 1).bit_length())
        self._shift = np.uint64(64 - bits)
        self._mask = np.int64((1 << bits) - 1)
        self._slots = row_numbers(1 << bits, len(values))
        pending = np.arange(len(values), dtype=np.int64)
        slots = self._hash(values)
        while len(pending):
            free = self._slots[slots] < 0
            self._slots[slots[free]] = pending[free]
            lost = self._slots[slots] != pending
            pending = pending[lost]
            slots = (slots[lost] + 1) & self._mask

    def _hash(self, values: Int64s) -> Int64s:
        return ((values.view(np.uint64) * _MULTIPLIER) >> self._shift).astype(np.int64)

    def lookup(self, values: Int64s) -> Int64s:
        """Position of each value, -1 where it is absent."""
        values = np.ascontiguousarray(values)
        slots = self._hash(values)
        positions = self._slots[slots].astype(np.int64)
        rows = np.flatnonzero(positions >= 0)
        rows = rows[self._values[positions[rows]] != values[rows]] if len(self._values) else rows[:0]
        slots = slots[rows]
        while len(rows):
            slots = (slots + 1) & self._mask
            candidate = self._slots[slots].astype(np.int64)
            positions[rows] = candidate
            wrong = (candidate >= 0) & (self._values[candidate] != values[rows])
            rows, slots = rows[wrong], slots[wrong]
        return positions


class DirectIndex:
    """Positions of distinct values from 0 to ``size``, one slot for each that could be."""

    def __init__(self, values: Int64s, size: int) -> None:
        self._slots = row_numbers(size + 1, len(values))
        self._slots[values] = np.arange(len(values), dtype=self._slots.dtype)

    def lookup(self, values: Int64s) -> Int64s:
        """Position of each value, -1 where it is absent or itself -1."""
        return self._slots[values].astype(np.int64)
