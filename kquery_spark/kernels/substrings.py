"""Searches literals in the bytes of all strings of an array at once, several times faster than string by string.

The compiled loops of ``loops/substrings.py`` do this if they are loaded, otherwise numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.types.vector import Flags, Int64s, validity

_WINDOW_BYTES = 4  # bytes that numpy compares at a time
_MAX_CANDIDATE_SHARE = 0.5  # largest share of candidates for which filtering them out first pays
# ``FILE_LOOPS.kernels`` measures work in column chunks. Without the loops, searching this number of bytes takes about as
# long as reading one chunk.
_BYTES_PER_CHUNK = 1 << 20


def contains(data: pa.Array, literal: str) -> pa.Array:
    """Return whether each string contains ``literal``; NULL for NULL."""
    needle = literal.encode()
    if data.type != pa.string() or len(needle) == 0 or len(data) == 0:
        return pc.match_substring(data, literal)
    offsets, raw = _buffers(data)
    loops = _loops(offsets)
    if loops is not None:
        return _with_nulls(_find_literal(loops, offsets, raw, needle), data)
    if len(needle) < _WINDOW_BYTES:
        return pc.match_substring(data, literal)
    start, end = int(offsets[0]), int(offsets[-1])
    flags = np.zeros(len(data), np.bool_)
    if end - start >= len(needle):
        hits = _find_occurrences(raw[start:end], needle) + start
        # A hit counts only if it ends in the string in which it begins: "ab" and "cd" are stored as "abcd".
        rows = np.searchsorted(offsets, hits, side="right") - 1
        flags[rows[hits + len(needle) <= offsets[rows + 1]]] = True
    return _with_nulls(flags, data)


def contains_in_order(
    data: pa.Array, literals: Sequence[str], is_prefix: bool, is_suffix: bool
) -> pa.Array | None:
    """Return whether each string contains all literals one after the other; NULL for NULL. None if the loops are not loaded.

    literals: at least two, none of them empty. is_prefix: whether strings must begin with the first one. is_suffix: whether
    they must end with the last one. Only strings that contain the longest literal are examined further.
    """
    if data.type != pa.string() or len(data) == 0:
        return None
    offsets, raw = _buffers(data)
    loops = _loops(offsets)
    if loops is None:
        return None
    needles = [literal.encode() for literal in literals]
    flags = _find_literal(loops, offsets, raw, max(needles, key=len))
    bounds = np.cumsum([0, *map(len, needles)], dtype=np.int32)
    joined = np.frombuffer(b"".join(needles), np.uint8)
    loops.check_order(raw, offsets, joined, bounds, is_prefix, is_suffix, flags.view(np.uint8))
    return _with_nulls(flags, data)


def matches(data: pa.Array, regex: str, literals: list[str]) -> pa.Array:
    """Return whether each string matches a regular expression. Every match contains all ``literals``.

    The longest literal rules out most strings cheaply, and the regular expression examines only the others.
    """
    longest = max(literals, key=lambda literal: len(literal.encode()), default="")
    if len(longest.encode()) < _WINDOW_BYTES:
        return pc.match_substring_regex(data, regex)
    has_literal = contains(data, longest)
    candidates = has_literal.true_count
    if candidates > _MAX_CANDIDATE_SHARE * len(data):
        return pc.match_substring_regex(data, regex)
    flags = pc.fill_null(has_literal, False).to_numpy(zero_copy_only=False)
    if candidates:
        chosen = pc.match_substring_regex(data.filter(pa.array(flags)), regex)
        flags = flags.copy()
        flags[flags] = chosen.to_numpy(zero_copy_only=False)
    return _with_nulls(flags, data)


def _buffers(data: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Return the offsets and the bytes of an array of strings that is not empty."""
    offsets = np.frombuffer(data.buffers()[1], np.int32)[data.offset : data.offset + len(data) + 1]
    values = data.buffers()[2]
    return offsets, np.frombuffer(b"" if values is None else values, np.uint8)


def _loops(offsets: npt.NDArray[np.int32]) -> ModuleType | None:
    return FILE_LOOPS.kernels(max(1, int(offsets[-1] - offsets[0]) // _BYTES_PER_CHUNK))


def _find_literal(
    loops: Any, offsets: npt.NDArray[np.int32], raw: npt.NDArray[np.uint8], needle: bytes
) -> Flags:
    flags = np.zeros(len(offsets) - 1, np.bool_)
    loops.find_literal(raw, offsets, np.frombuffer(needle, np.uint8), flags.view(np.uint8))
    return flags


def _with_nulls(flags: Flags, data: pa.Array) -> pa.Array:
    valid = validity(data)
    return pa.array(flags, mask=None if valid is None else ~valid)


def _find_occurrences(raw: np.ndarray, needle: bytes) -> Int64s:
    """Return the offsets at which the needle occurs.

    The bytes are compared as 32-bit words in four passes, shifted by 0 to 3 bytes. This finds all offsets at which the first
    four bytes match; then the remaining bytes are compared at these offsets only.
    """
    first = np.frombuffer(needle[:_WINDOW_BYTES], np.uint32)[0]
    last = len(raw) - len(needle)
    parts = []
    for shift in range(_WINDOW_BYTES):
        whole = (len(raw) - shift) // _WINDOW_BYTES * _WINDOW_BYTES
        words = raw[shift : shift + whole].view(np.uint32)
        parts.append(np.flatnonzero(words == first) * _WINDOW_BYTES + shift)
    offsets = np.concatenate(parts)
    offsets = offsets[offsets <= last]
    for index in range(_WINDOW_BYTES, len(needle)):
        offsets = offsets[raw[offsets + index] == needle[index]]
    return offsets
