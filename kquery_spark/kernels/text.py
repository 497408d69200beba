"""String columns as numpy arrays: their bytes, the offsets of their characters, and vectorized slicing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.types import names as t
from kquery_spark.types.sizes import check_string_bytes, reserve_replacements
from kquery_spark.types.vector import Int64s

Bytes = npt.NDArray[np.uint8]
_BLOCK_ROWS = 32_768  # rows whose intermediate results stay in the processor's cache


def layout(array: pa.Array) -> tuple[Int64s, Bytes]:
    """Return the offsets of a string or binary array (one more than it has rows) and the bytes that they point into."""
    if len(array) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
    data = array.buffers()[2]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return offsets, raw


def as_lines(strings: pa.Array) -> bytes:
    """Concatenate strings, which must not be NULL, with a line feed after each."""
    if not len(strings):
        return b""
    lines = pc.binary_join_element_wise(strings, "", "\n")
    offsets = np.frombuffer(lines.buffers()[1], np.int32, len(lines) + 1, 4 * lines.offset)
    return bytes(lines.buffers()[2][int(offsets[0]) : int(offsets[-1])])


def replace_all(strings: pa.Array, old: str | bytes, new: str | bytes) -> pa.Array:
    """Replace ``old`` by ``new`` in strings or binaries. Raises BatchTooLarge if the result's offsets would overflow."""
    old_bytes, new_bytes = (s.encode() if isinstance(s, str) else s for s in (old, new))
    if len(new_bytes) > len(old_bytes):
        reserve_replacements(strings, len(new_bytes), lambda: pc.count_substring(strings, old))
    return pc.replace_substring(strings, old, new)  # noqa: TID251


class Words:
    """Reads the strings of an array in words of eight bytes, for many rows at a time.

    The bytes are copied into 64-bit words once. A string begins anywhere within a word, so eight of its bytes come from two
    neighboring words: bytes 5 to 12 are word 0 shifted right by 40 bits, or-ed with word 1 shifted left by 24 bits.
    """

    def __init__(self, array: pa.Array) -> None:
        offsets, raw = layout(array)
        data = raw[offsets[0] : offsets[-1]]
        self._words = np.zeros(len(data) // 8 + 2, np.uint64)
        self._words.view(np.uint8)[: len(data)] = data
        self._starts = offsets[:-1] - offsets[0]
        self.lengths: Int64s = np.diff(offsets)
        self.has_zeros = bool((data == 0).any())

    def at(self, offset: int, rows: Int64s) -> npt.NDArray[np.uint64]:
        """Return bytes ``offset`` to ``offset + 7`` of the strings of ``rows``: first byte lowest, zeros after the end."""
        words = np.empty(len(rows), np.uint64)
        for start in range(0, len(rows), _BLOCK_ROWS):
            words[start : start + _BLOCK_ROWS] = self._read_block(offset, rows[start : start + _BLOCK_ROWS])
        return words

    def _read_block(self, offset: int, rows: Int64s) -> npt.NDArray[np.uint64]:
        size: Int64s = np.clip(self.lengths.take(rows) - offset, 0, 8)
        start = np.where(size > 0, self._starts.take(rows) + offset, 0)
        word, shift = start >> 3, ((start & 7) << 3).astype(np.uint64)
        words = self._words.take(word) >> shift
        # two shifts, because a shift by 64 bits is undefined
        words |= (self._words.take(word + 1) << (np.uint64(63) - shift)) << np.uint64(1)
        # shift out the bytes of the next string
        excess_bits = ((8 - np.maximum(size, 1)) << 3).astype(np.uint64)
        return np.where(size > 0, (words << excess_bits) >> excess_bits, np.uint64(0))


def is_ascii(array: pa.Array) -> bool:
    """Return True if every character has one byte."""
    offsets, raw = layout(array)
    part = raw[offsets[0] : offsets[-1]]
    return len(part) == 0 or int(part.max()) < 128


def has_four_byte_characters(array: pa.Array) -> bool:
    """Return True if a character does not fit into Java's 16-bit ``char``, so that Java counts it as two."""
    offsets, raw = layout(array)
    part = raw[offsets[0] : offsets[-1]]
    return len(part) > 0 and int(part.max()) >= 0xF0


def null_mask(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Return a mask that is True for NULL rows, or None if there are none."""
    if not array.null_count:
        return None
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)


def gather(raw: Bytes, begins: Int64s, ends: Int64s, mask: Any, dtype: pa.DataType = t.STRING) -> pa.Array:
    """Build an array of the strings ``raw[begin:end]``, NULL where ``mask`` is True."""
    sizes = np.maximum(ends - begins, 0)
    if mask is not None:
        sizes = np.where(mask, 0, sizes)
    bounds = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    # The source position of every output byte: slices that begin at 10 and 40 with 2 and 3 bytes give 10, 11, 40, 41, 42.
    positions = np.repeat(begins - bounds[:-1], sizes) + np.arange(bounds[-1])
    return build(bounds, raw[positions], mask, dtype)


def build(bounds: Int64s, raw: Bytes, mask: Any, dtype: pa.DataType = t.STRING) -> pa.Array:
    """Build a string or binary array from its offsets and bytes; ``mask`` is True for NULL rows, or None."""
    check_string_bytes(int(bounds[-1]), "strings of a batch")
    bitmap, nulls = None, 0
    if mask is not None:
        bitmap, nulls = pa.array(~mask).buffers()[1], int(np.count_nonzero(mask))
    buffers = [bitmap, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(raw))]
    return pa.Array.from_buffers(dtype, len(bounds) - 1, buffers, nulls)


class Characters:
    """Offsets of the characters of a string array, which translate slices by characters to slices by bytes.

    ``starts`` has the byte offset of every character of the array, and ``first`` the index of each row's first character in
    it. An array of ASCII has one byte per character (``single``) and needs neither.
    """

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
        """The number of characters in each row."""
        return np.asarray(self.first[1:] - self.first[:-1])

    def byte(self, index: Int64s) -> Int64s:
        """Return the byte position of character ``index`` (0 to the length) of each row."""
        if self.single:
            return np.asarray(self.offsets[:-1] + index)
        position = self.starts[np.minimum(self.first[:-1] + index, len(self.starts) - 1)]
        return np.where(index >= self.lengths, self.offsets[1:], position)

    def characters_before(self, position: Int64s) -> Int64s:
        """Return the number of characters of the row that lie before a byte position, for each row."""
        if self.single:
            return np.asarray(position - self.offsets[:-1])
        return np.asarray(self.counts[position] - self.first[:-1])


_MISREADS_SLICES = int(pa.__version__.split(".")[0]) < 24


def if_else(test: Any, left: Any, right: Any) -> Any:
    """``pc.if_else`` that works around a bug: pyarrow before 24 misreads string slices combined with a NULL scalar."""
    if _MISREADS_SLICES and not isinstance(test, pa.Scalar):
        left, right = (_expand_null_string(side, len(test)) for side in (left, right))
    return pc.if_else(test, left, right)


def _expand_null_string(side: Any, count: int) -> Any:
    """Convert a NULL string scalar to an array; return everything else unchanged."""
    is_null_string = isinstance(side, pa.Scalar) and not side.is_valid and side.type in (t.STRING, t.BINARY)
    return pa.nulls(count, side.type) if is_null_string else side
