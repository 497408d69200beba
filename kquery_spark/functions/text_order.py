"""The order of strings and byte strings, eight bytes at a time as integers.

Most strings are told apart by their first bytes, and sorting integers takes a fifth of the time of comparing strings.
Spark sorts by such prefixes, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.integer_order import lexicographic_order
from kquery_spark.types.vector import Int64s

_WIDTH = 8
_ROUNDS = 32  # after so many times eight equal bytes the rest is left to Arrow
_PIECE = 32_768  # rows whose intermediate results stay in the processor's cache
_SIGN = np.uint64(1 << 63)


def text_ranks(data: pa.Array) -> Int64s:
    """For each string or byte string how many are smaller, by bytes; of a NULL anything. Equal ones are equal."""
    text = _Text(data)
    ranks = np.zeros(len(data), np.int64)
    open_rows = np.arange(len(data))
    for place in range(0, _ROUNDS * _WIDTH, _WIDTH):
        if not len(open_rows):
            return ranks
        keys = [ranks.take(open_rows), text.integers(open_rows, place)]
        if text.has_zeros:  # else the bytes that are not there tell as much
            keys.append(np.minimum(text.lengths.take(open_rows) - place, _WIDTH + 1))
        open_rows = _refined(ranks, open_rows, keys)
        # one that ends here is told from a longer one by the next bytes; one that ended before is equal to the others
        open_rows = open_rows[text.lengths.take(open_rows) >= place + _WIDTH]
    if len(open_rows):
        rest = data.take(pa.array(open_rows)).cast(pa.binary()).fill_null(b"").dictionary_encode()
        places = np.empty(len(rest.dictionary), np.int64)
        places[pc.sort_indices(rest.dictionary).to_numpy()] = np.arange(len(places))
        _refined(ranks, open_rows, [ranks.take(open_rows), places.take(rest.indices.to_numpy())])
    return ranks


def _refined(ranks: Int64s, rows: Int64s, keys: list[Int64s]) -> Int64s:
    """Tell rows of equal ranks apart by further keys (the first key is the rank); those that are still equal come back."""
    keys = [keys[0], *(k for k in keys[1:] if k.min() != k.max())]
    order = lexicographic_order(keys)
    before = keys[0].take(order)
    new = np.ones(len(rows), np.bool_)
    np.not_equal(before[1:], before[:-1], out=new[1:])
    block = np.flatnonzero(new)  # where the rows of a rank start
    for key in keys[1:]:
        ordered = key.take(order)
        new[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new)
    sizes = np.diff(starts, append=len(rows))
    # a rank and how many of the rows of that rank come before
    within = starts - np.repeat(block, np.diff(np.searchsorted(starts, block), append=len(starts)))
    rows = rows.take(order)
    ranks[rows] = before + np.repeat(within, sizes)
    return rows[np.repeat(sizes > 1, sizes)]


class _Text:
    """The bytes of all strings of an array."""

    def __init__(self, data: pa.Array) -> None:
        _, offsets, values = data.buffers()
        ends = np.zeros(1, np.int64)
        if len(data):
            ends = np.frombuffer(offsets, np.int32, len(data) + 1, 4 * data.offset).astype(np.int64)
        first, size = int(ends[0]), int(ends[-1] - ends[0])
        given = np.frombuffer(values, np.uint8, size, first) if size else np.zeros(0, np.uint8)
        self._words = np.zeros(size // _WIDTH + 2, np.uint64)
        self._words.view(np.uint8)[:size] = given
        self._starts = ends[:-1] - first
        self.lengths = np.diff(ends)
        self.has_zeros = bool((given == 0).any())

    def integers(self, rows: Int64s, place: int) -> Int64s:
        """Eight bytes of these strings from a place on, zeros where a string ends, in the order of the bytes."""
        found = np.empty(len(rows), np.uint64)
        for at in range(0, len(rows), _PIECE):
            found[at : at + _PIECE] = self._words_of(rows[at : at + _PIECE], place)
        found ^= _SIGN
        return found.view(np.int64)

    def _words_of(self, rows: Int64s, place: int) -> npt.NDArray[np.uint64]:
        length: npt.NDArray[Any] = np.clip(self.lengths.take(rows) - place, 0, _WIDTH)
        start = np.where(length > 0, self._starts.take(rows) + place, 0)
        shift = ((start & 7) << 3).astype(np.uint64)
        word = start >> 3
        found = self._words.take(word) >> shift
        found |= (self._words.take(word + 1) << (np.uint64(63) - shift)) << np.uint64(1)
        found = found.byteswap()
        unwanted = (np.minimum(_WIDTH - length, _WIDTH - 1) << 3).astype(np.uint64)
        found = (found >> unwanted) << unwanted
        found[length == 0] = 0
        return np.asarray(found, np.uint64)
