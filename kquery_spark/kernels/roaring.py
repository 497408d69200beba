"""64-bit Roaring bitmaps in their portable form, as Delta and Iceberg store which rows of a file are deleted.

The form is that of https://github.com/RoaringBitmap/RoaringFormatSpec: a count of bitmaps, then for each the high 32 bits of
its numbers and a 32-bit bitmap, which has containers of up to 65,536 numbers. Every length and order is checked, as a
bitmap that is read wrongly gives deleted rows back.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

_COOKIE, _COOKIE_WITH_RUNS = 12346, 12347
_MIN_OFFSET_CONTAINERS = 4  # of a bitmap with runs, for it to have the containers' offsets
_MAX_ARRAY_NUMBERS = 4096  # of a container that lists its numbers; larger ones have a bit for each
_BITMAP_BYTES = 8192


def read_positions(data: bytes) -> Positions:
    """The numbers of a bitmap in rising order; ValueError for bytes that are no such bitmap."""
    reader = _Reader(data)
    parts: list[Positions] = []
    last = -1
    for _ in range(reader.number("<Q")):
        high = reader.number("<I")
        if high <= last or high > 0x7FFFFFFF:
            raise ValueError("the bitmaps are not in rising order")
        parts += [low + (high << 32) for low in _bitmap(reader)]
        last = high
    if not reader.at_end:
        raise ValueError("there are bytes behind the last bitmap")
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class _Reader:
    """Takes bytes one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, nbytes: int) -> bytes:
        data = self._data[self._at : self._at + nbytes]
        if len(data) < nbytes:
            raise ValueError(f"it ends after {len(self._data)} bytes, in the middle of a bitmap")
        self._at += nbytes
        return data

    def number(self, form: str) -> int:
        value: int = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def words(self, count: int) -> npt.NDArray[np.int64]:
        """Unsigned numbers of 16 bits."""
        return np.frombuffer(self.take(2 * count), "<u2").astype(np.int64)


def _bitmap(reader: _Reader) -> list[Positions]:
    """The numbers of each container of a 32-bit bitmap."""
    cookie = reader.number("<I")
    with_runs = cookie & 0xFFFF == _COOKIE_WITH_RUNS
    if with_runs:
        count = (cookie >> 16) + 1
        run_bits = np.frombuffer(reader.take((count + 7) // 8), np.uint8)
        has_runs = np.unpackbits(run_bits, bitorder="little")[:count].astype(bool)
    elif cookie == _COOKIE:
        count = reader.number("<I")
        if count > 1 << 16:
            raise ValueError(f"a bitmap has {count:,} containers, of which there can be 65,536")
        has_runs = np.zeros(count, bool)
    else:
        raise ValueError(f"a bitmap begins with {cookie}, which no Roaring bitmap does")
    described = reader.words(2 * count)
    keys, sizes = described[::2], described[1::2] + 1
    if (np.diff(keys) <= 0).any():
        raise ValueError("the containers of a bitmap are not in rising order")
    if not with_runs or count >= _MIN_OFFSET_CONTAINERS:
        reader.take(4 * count)  # where each container begins, which follows from their sizes
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
        raise ValueError(f"a container does not have its {size:,} numbers in rising order")
    return numbers


def _runs(reader: _Reader) -> Positions:
    """The numbers of a container of runs: where each begins and how many numbers follow."""
    described = reader.words(2 * int(reader.words(1)[0]))
    starts, lengths = described[::2], described[1::2] + 1
    if (starts[1:] < (starts + lengths)[:-1]).any() or (starts + lengths > 1 << 16).any():
        raise ValueError("the runs of a container overlap or leave it")
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths), np.int64)
