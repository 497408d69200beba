"""The order of strings and byte strings, eight bytes at a time as integers.

Most strings differ in their first bytes. To sort these as integers takes a third of the time of sorting the
distinct strings. Spark also sorts by such prefixes.
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
_MAX_PREFIX_ROUNDS = (
    32  # after this number of rounds of eight equal bytes, the remaining bytes are sorted as strings
)
_SIGN = np.uint64(1 << 63)


def text_ranks(data: pa.Array) -> Int64s:
    """For each string or byte string how many are smaller, by bytes; equal values have equal ranks, NULLs any."""
    words = Words(data)
    ranks = np.zeros(len(data), np.int64)
    rows = np.arange(len(data))  # rows that share their rank so far
    for offset in range(0, _MAX_PREFIX_ROUNDS * _PREFIX_BYTES, _PREFIX_BYTES):
        if not len(rows):
            return ranks
        keys = [_ordered(words, offset, rows)]
        if words.has_zeros:  # otherwise the padding after a short value orders it as well
            keys.append(np.minimum(words.lengths.take(rows) - offset, _PREFIX_BYTES + 1))
        rows = _refined(ranks, rows, keys)
        # a value that ends here differs from a longer one in the next bytes; one that ended before equals its peers
        rows = rows[words.lengths.take(rows) >= offset + _PREFIX_BYTES]
    rest = data.take(pa.array(rows)).cast(t.BINARY)
    _refined(ranks, rows, [dictionary_ranks(Vector(t.BINARY, rest))[0]])
    return ranks


def text_prefixes(data: pa.Array) -> Int64s:
    """Integers that are smaller only where the bytes are; strings of equal ones are in any order. Of a NULL anything."""
    return _ordered(Words(data), 0, np.arange(len(data)))


def _ordered(words: Words, offset: int, rows: Int64s) -> Int64s:
    """The eight bytes at ``offset`` of some rows, as integers in the order of the bytes."""
    return (words.at(offset, rows).byteswap() ^ _SIGN).view(np.int64)


def _refined(ranks: Int64s, rows: Int64s, keys: list[Int64s]) -> Int64s:
    """Tell rows of equal ranks apart by further keys; those that are still equal come back."""
    columns = [ranks.take(rows), *(k for k in keys if len(k) and k.min() != k.max())]
    order = lexicographic_order(columns)
    columns = [column.take(order) for column in columns]
    blocks = run_starts(columns[0])  # of rows that were equal
    starts = run_starts(*columns)  # of those that are
    sizes = np.diff(starts, append=len(rows))
    # to a rank come the rows of that rank that are before
    before = starts - blocks.take(np.searchsorted(blocks, starts, "right") - 1)
    rows = rows.take(order)
    ranks[rows] = columns[0] + np.repeat(before, sizes)
    return rows[np.repeat(sizes > 1, sizes)]
