"""Reads 64-bit Roaring bitmaps in the portable format, in which Delta and Iceberg store the deleted rows of a file.

https://github.com/RoaringBitmap/RoaringFormatSpec defines the format: the number of bitmaps, then for each bitmap the high
32 bits of its numbers and a 32-bit bitmap, which has containers of up to 65,536 numbers. A container is a sorted list, a
bit set or a list of runs. For example, row 4,295,032,835 is 1 * 2^32 + 1 * 2^16 + 3: number 3 in container 1 of bitmap 1.

Every length and order is checked, since a misread bitmap would return deleted rows.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

_COOKIE, _COOKIE_WITH_RUNS = 12346, 12347
# A bitmap with runs stores the offsets of its containers only if it has at least this number of them.
_MIN_OFFSET_CONTAINERS = 4
_MAX_ARRAY_NUMBERS = 4096  # a container with at most this number lists its numbers; a larger one is a bit set
_BITMAP_BYTES = 8192


def read_positions(data: bytes) -> Positions:
    """Return the numbers of a bitmap in ascending order; raises ValueError for malformed bytes."""
    reader = _Reader(data)
    parts: list[Positions] = []
    last = -1
    for _ in range(reader.number("<Q")):
        high = reader.number("<I")
        if high <= last or high > 0x7FFFFFFF:
            raise ValueError("the bitmaps are not in ascending order")
        parts += [low + (high << 32) for low in _bitmap(reader)]
        last = high
    if not reader.at_end:
        raise ValueError("there are bytes after the last bitmap")
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class _Reader:
    """Reads bytes sequentially."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, nbytes: int) -> bytes:
        data = self._data[self._at : self._at + nbytes]
        if len(data) < nbytes:
            raise ValueError(f"the data ends after {len(self._data)} bytes, in the middle of a bitmap")
        self._at += nbytes
        return data

    def number(self, form: str) -> int:
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def words(self, count: int) -> npt.NDArray[np.int64]:
        """Read unsigned 16-bit integers."""
        return np.frombuffer(self.take(2 * count), "<u2").astype(np.int64)


def _bitmap(reader: _Reader) -> list[Positions]:
    """Read a 32-bit bitmap; return the numbers of each container."""
    cookie = reader.number("<I")
    with_runs = cookie & 0xFFFF == _COOKIE_WITH_RUNS
    if with_runs:
        count = (cookie >> 16) + 1
        run_bits = np.frombuffer(reader.take((count + 7) // 8), np.uint8)
        has_runs = np.unpackbits(run_bits, bitorder="little")[:count].astype(bool)
    elif cookie == _COOKIE:
        count = reader.number("<I")
        if count > 1 << 16:
            raise ValueError(f"a bitmap has {count:,} containers, but 65,536 is the maximum")
        has_runs = np.zeros(count, bool)
    else:
        raise ValueError(f"a bitmap begins with the cookie {cookie}, which is unknown")
    described = reader.words(2 * count)
    keys, sizes = described[::2], described[1::2] + 1
    if (np.diff(keys) <= 0).any():
        raise ValueError("the containers of a bitmap are not in ascending order")
    if not with_runs or count >= _MIN_OFFSET_CONTAINERS:
        reader.take(4 * count)  # skip the offsets of the containers, which follow from their sizes
    return [
        _container(reader, int(size), bool(runs)) + (int(key) << 16)
        for key, size, runs in zip(keys, sizes, has_runs, strict=True)
    ]


def _container(reader: _Reader, size: int, has_runs: bool) -> Positions:
    if has_runs:
        numbers = _runs(reader)
    elif size <= _MAX_ARRAY_NUMBERS:
        numbers = reader.words(size)
    else:
        bits = np.frombuffer(reader.take(_BITMAP_BYTES), np.uint8)
        numbers = np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)
    if len(numbers) != size or (np.diff(numbers) <= 0).any():
        raise ValueError(f"a container does not have its {size:,} numbers in ascending order")
    return numbers


def _runs(reader: _Reader) -> Positions:
    """Read a container of runs, each given as its first number and the count of the numbers that follow it."""
    described = reader.words(2 * int(reader.words(1)[0]))
    starts, lengths = described[::2], described[1::2] + 1
    if (starts[1:] < (starts + lengths)[:-1]).any() or (starts + lengths > 1 << 16).any():
        raise ValueError("the runs of a container overlap or leave it")
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths), np.int64)
