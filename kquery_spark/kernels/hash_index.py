"""Tables that map distinct int64 values to their positions, in numpy: hash tables, or arrays indexed by small values.

Unlike Arrow's ``index_in``, a table is built once and probed batch by batch.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kquery_spark.types.vector import Int64s

# Up to this number of values most slots stay free, so that the first probe finds that a value is absent.
_MAX_SPARSE_VALUES = 1 << 16
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""The multiplier of Fibonacci hashing: 2^64 divided by the golden ratio, rounded to an odd number."""


def empty_slots(size: int, rows: int) -> npt.NDArray[np.signedinteger]:
    """Return ``size`` empty slots (-1) that can hold row numbers below ``rows``; 32 bits wide if possible."""
    return np.full(size, -1, np.int32 if rows <= np.iinfo(np.int32).max else np.int64)


def hash_index_bytes(count: int) -> int:
    """Return the memory of a ``HashIndex`` of ``count`` values: the values and the slots."""
    return 8 * count + (4 if count <= np.iinfo(np.int32).max else 8) * (1 << _slot_bits(count))


def _slot_bits(count: int) -> int:
    """Return the binary logarithm of the number of slots for ``count`` values."""
    room = 8 if count <= _MAX_SPARSE_VALUES else 2
    return max(4, int(room * max(count, 1) - 1).bit_length())


class HashIndex:
    """Hash table with linear probing from distinct values to their positions; at most half full, or an eighth if small.

    Both building and probing handle all values at once. Each round looks at one slot per pending value; values whose slot
    is taken by another value move on to the next slot. With 50 % load a few rounds suffice.
    """

    def __init__(self, values: Int64s) -> None:
        self._values = values
        bits = _slot_bits(len(values))
        self._shift = np.uint64(64 - bits)
        self._mask = np.int64((1 << bits) - 1)
        self._slots = empty_slots(1 << bits, len(values))
        pending = np.arange(len(values), dtype=np.int64)
        slots = self._hash(values)
        while len(pending):
            free = self._slots[slots] < 0
            self._slots[slots[free]] = pending[free]  # if several values claim one slot, numpy keeps the last
            displaced = self._slots[slots] != pending
            pending = pending[displaced]
            slots = (slots[displaced] + 1) & self._mask

    @property
    def nbytes(self) -> int:
        """The memory of the values and the slots."""
        return self._values.nbytes + self._slots.nbytes

    def _hash(self, values: Int64s) -> Int64s:
        # Fibonacci hashing: the upper bits of the product depend on all bits of the value.
        return ((values.view(np.uint64) * MULTIPLIER) >> self._shift).astype(np.int64)

    def lookup(self, values: Int64s) -> Int64s:
        """Return the position of each value, -1 if it is absent."""
        values = np.ascontiguousarray(values)
        slots = self._hash(values)
        positions = self._slots[slots].astype(np.int64)
        # All rows read their first slot above. From here on, ``rows`` are those whose slot holds another value: they read
        # the next slots until they find their value or a free slot (-1).
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
    """Maps distinct values from 0 to ``size`` to their positions, with one slot for each possible value."""

    def __init__(self, values: Int64s, size: int) -> None:
        self._slots = empty_slots(size + 1, len(values))
        self._slots[values] = np.arange(len(values), dtype=self._slots.dtype)

    @property
    def nbytes(self) -> int:
        """The memory of the slots."""
        return self._slots.nbytes

    def lookup(self, values: Int64s) -> Int64s:
        """Return the position of each value, -1 if it is absent or itself -1 (which reads the last, empty slot)."""
        return self._slots[values].astype(np.int64)
