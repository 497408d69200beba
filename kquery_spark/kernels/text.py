"""String columns as numpy arrays: their bytes, where characters begin, and slices gathered without a loop over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s

Bytes = npt.NDArray[np.uint8]
_PIECE_ROWS = 32_768  # rows whose intermediate results stay in the processor's cache


def layout(array: pa.Array) -> tuple[Int64s, Bytes]:
    """Offsets of a string or binary array (one more than rows) and the bytes they point into."""
    if len(array) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
    data = array.buffers()[2]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return offsets, raw


def as_lines(strings: pa.Array) -> bytes:
    """The strings, none of which is NULL, one after another with a line end behind each."""
    if not len(strings):
        return b""
    lines = pc.binary_join_element_wise(strings, "", "\n")
    offsets = np.frombuffer(lines.buffers()[1], np.int32, len(lines) + 1, 4 * lines.offset)
    return bytes(lines.buffers()[2][int(offsets[0]) : int(offsets[-1])])


class Words:
    """The strings of an array, eight bytes of many of them at a time."""

    def __init__(self, array: pa.Array) -> None:
        offsets, raw = layout(array)
        given = raw[offsets[0] : offsets[-1]]
        self._words = np.zeros(len(given) // 8 + 2, np.uint64)
        self._words.view(np.uint8)[: len(given)] = given
        self._starts = offsets[:-1] - offsets[0]
        self.lengths: Int64s = np.diff(offsets)
        self.has_zeros = bool((given == 0).any())

    def at(self, offset: int, rows: Int64s) -> npt.NDArray[np.uint64]:
        """Bytes ``offset`` to ``offset + 7`` of these rows' strings, the first the lowest, zeros where a string ends."""
        words = np.empty(len(rows), np.uint64)
        for start in range(0, len(rows), _PIECE_ROWS):
            words[start : start + _PIECE_ROWS] = self._some(offset, rows[start : start + _PIECE_ROWS])
        return words

    def _some(self, offset: int, rows: Int64s) -> npt.NDArray[np.uint64]:
        size: Int64s = np.clip(self.lengths.take(rows) - offset, 0, 8)
        start = np.where(size > 0, self._starts.take(rows) + offset, 0)
        word, shift = start >> 3, ((start & 7) << 3).astype(np.uint64)
        words = self._words.take(word) >> shift
        words |= (self._words.take(word + 1) << (np.uint64(63) - shift)) << np.uint64(1)
        beyond = ((8 - np.maximum(size, 1)) << 3).astype(np.uint64)  # bits; a shift by 64 is none
        return np.where(size > 0, (words << beyond) >> beyond, np.uint64(0))


def is_ascii(array: pa.Array) -> bool:
    """Whether no character needs more than one byte."""
    offsets, raw = layout(array)
    part = raw[offsets[0] : offsets[-1]]
    return len(part) == 0 or int(part.max()) < 128


def has_four_byte_characters(array: pa.Array) -> bool:
    """Whether a character is beyond the 16 bits of Java's characters, so that Java counts it as two."""
    offsets, raw = layout(array)
    part = raw[offsets[0] : offsets[-1]]
    return len(part) > 0 and int(part.max()) >= 0xF0


def null_mask(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """True where NULL, or None when nothing is."""
    if not array.null_count:
        return None
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)


def gather(raw: Bytes, begins: Int64s, ends: Int64s, mask: Any, dtype: pa.DataType = t.STRING) -> pa.Array:
    """The strings ``raw[begin:end]``, NULL where ``mask``."""
    sizes = np.maximum(ends - begins, 0)
    if mask is not None:
        sizes = np.where(mask, 0, sizes)
    bounds = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    positions = np.repeat(begins - bounds[:-1], sizes) + np.arange(bounds[-1])
    return build(bounds, raw[positions], mask, dtype)


def build(bounds: Int64s, raw: Bytes, mask: Any, dtype: pa.DataType = t.STRING) -> pa.Array:
    """A string or binary array from its offsets and bytes."""
    if bounds[-1] > 2**31 - 1:
        raise MemoryError("a batch of strings grew past 2 GiB")
    bitmap, nulls = None, 0
    if mask is not None:
        bitmap, nulls = pa.array(~mask).buffers()[1], int(np.count_nonzero(mask))
    buffers = [bitmap, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(raw))]
    return pa.Array.from_buffers(dtype, len(bounds) - 1, buffers, nulls)


class Characters:
    """Where the characters of a string array begin, so that a slice by characters becomes one by bytes."""

    def __init__(self, array: pa.Array) -> None:
        self.offsets, self.raw = layout(array)
        self.single = is_ascii(array) or array.type == t.BINARY
        if self.single:
            self.starts = self.first = self.offsets
            return
        leads = (self.raw & 0xC0) != 0x80
        counts = np.zeros(len(self.raw) + 1, np.int64)
        np.cumsum(leads, out=counts[1:])
        self.starts = np.append(np.flatnonzero(leads), len(self.raw))
        self.first = counts[self.offsets]  # index of each row's first character
        self.counts = counts

    @property
    def lengths(self) -> Int64s:
        """Characters in each row."""
        return np.asarray(self.first[1:] - self.first[:-1])

    def byte(self, index: Int64s) -> Int64s:
        """Byte position of each row's character ``index`` (0 to its length)."""
        if self.single:
            return np.asarray(self.offsets[:-1] + index)
        position = self.starts[np.minimum(self.first[:-1] + index, len(self.starts) - 1)]
        return np.where(index >= self.lengths, self.offsets[1:], position)

    def characters_before(self, position: Int64s) -> Int64s:
        """How many characters of its row lie before each byte position."""
        if self.single:
            return np.asarray(position - self.offsets[:-1])
        return np.asarray(self.counts[position] - self.first[:-1])


_MISREADS_SLICES = int(pa.__version__.split(".")[0]) < 24


def if_else(test: Any, left: Any, right: Any) -> Any:
    """``pc.if_else`` without a bug of pyarrow before 24, which misreads string slices combined with a NULL scalar."""
    if _MISREADS_SLICES and not isinstance(test, pa.Scalar):
        left, right = (_repeated(side, len(test)) for side in (left, right))
    return pc.if_else(test, left, right)


def _repeated(side: Any, count: int) -> Any:
    """The array of a scalar text that is NULL; what else there is as it is."""
    is_null_text = isinstance(side, pa.Scalar) and not side.is_valid and side.type in (t.STRING, t.BINARY)
    return pa.nulls(count, side.type) if is_null_text else side
