"""Sorts strings and byte strings by eight bytes at a time, which are compared as integers.

Most strings differ in their first bytes. Sorting these as integers takes a third of the time of sorting the distinct
strings. Spark also sorts by such prefixes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kquery_spark.kernels.integer_order import lexicographic_order, run_starts
from kquery_spark.kernels.text import Words
from kquery_spark.physical.aggregates.reduce import ranks as dictionary_ranks
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector

_PREFIX_BYTES = 8
# After this number of rounds of eight equal bytes, the remaining bytes are sorted as strings.
_MAX_PREFIX_ROUNDS = 32
_SIGN = np.uint64(1 << 63)


def text_ranks(data: pa.Array) -> Int64s:
    """Return, for each string or byte string, the number of values that are smaller. The ranks of NULLs are arbitrary.

    Rows with equal ranks are refined round by round. With two bytes per round instead of eight, ``abc``, ``abd``, ``x`` have
    the ranks 0 0 2 after ``ab``, ``ab``, ``x``, and 0 1 2 after the next bytes of the two tied rows, ``c`` and ``d``.
    """
    words = Words(data)
    ranks = np.zeros(len(data), np.int64)
    rows = np.arange(len(data))  # the rows whose rank so far is not unique
    for offset in range(0, _MAX_PREFIX_ROUNDS * _PREFIX_BYTES, _PREFIX_BYTES):
        if not len(rows):
            return ranks
        keys = [_ordered(words, offset, rows)]
        # Without zero bytes, the zero padding alone sorts a short value before longer ones.
        if words.has_zeros:
            keys.append(np.minimum(words.lengths.take(rows) - offset, _PREFIX_BYTES + 1))
        rows = _refined(ranks, rows, keys)
        # A tied value that ends within these bytes is equal to its ties, so only longer values go to the next round.
        rows = rows[words.lengths.take(rows) >= offset + _PREFIX_BYTES]
    rest = data.take(pa.array(rows)).cast(t.BINARY)
    _refined(ranks, rows, [dictionary_ranks(Vector(t.BINARY, rest))[0]])
    return ranks


def text_prefixes(data: pa.Array) -> Int64s:
    """Return the first eight bytes as integers: a smaller integer means a smaller string. Arbitrary for NULL.

    Strings with equal integers can have any order.
    """
    return _ordered(Words(data), 0, np.arange(len(data)))


def _ordered(words: Words, offset: int, rows: Int64s) -> Int64s:
    """Return the eight bytes at ``offset`` of some rows, as integers in the order of the bytes."""
    return (words.at(offset, rows).byteswap() ^ _SIGN).view(np.int64)


def _refined(ranks: Int64s, rows: Int64s, keys: list[Int64s]) -> Int64s:
    """Refine the ranks of rows by further keys, in place. Return the rows whose rank is still not unique.

    The rows are sorted by rank and keys. A block is a range of rows with the same old rank, and within it, each run of equal
    keys gets a new rank: the old rank plus the number of rows of the block before the run.
    """
    columns = [ranks.take(rows), *(k for k in keys if len(k) and k.min() != k.max())]
    order = lexicographic_order(columns)
    columns = [column.take(order) for column in columns]
    blocks = run_starts(columns[0])  # where the old rank changes
    starts = run_starts(*columns)  # where the old rank or a key changes
    sizes = np.diff(starts, append=len(rows))
    # The number of rows of the same block before each run.
    before = starts - blocks.take(np.searchsorted(blocks, starts, "right") - 1)
    rows = rows.take(order)
    ranks[rows] = columns[0] + np.repeat(before, sizes)
    return rows[np.repeat(sizes > 1, sizes)]
