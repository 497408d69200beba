"""Splits strings and binaries into parts of eight bytes that are compared as integers.

For example, ``abcdefghij`` has the parts ``abcdefgh`` and ``ij``. Most strings differ in their first part. Sorting by it
takes a third of the time of sorting the distinct strings. Spark also sorts by such prefixes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.kernels.text import Words, layout
from kquery_spark.physical.aggregates.reduce import ranks
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, validity

_PART_BYTES = 8
_MAX_PARTS = 32  # strings that are equal in this number of parts are ranked as whole strings
_SIGN = np.uint64(1 << 63)


class StringParts:
    """Sort columns for the parts of a string or binary column. All NULLs are equal in every part.

    count: the number of parts of the longest string, where everything after ``_MAX_PARTS`` parts is one more part.
    """

    def __init__(self, data: pa.Array, ascending: bool) -> None:
        self._data = data
        self._ascending = ascending
        longest = int(np.diff(layout(data)[0]).max(initial=0))
        self.count = min(-(-longest // _PART_BYTES), _MAX_PARTS + 1)

    @cached_property
    def _words(self) -> Words:
        return Words(self._data)

    def columns(self, part: int, rows: Int64s | None) -> list[Int64s]:
        """Return the columns of a part: its bytes, and the number of bytes if strings contain zero bytes.

        A part is padded with zeros, so without zero bytes a short string sorts before longer ones.
        """
        rows = np.arange(len(self._data)) if rows is None else rows
        offset = part * _PART_BYTES
        lengths = self._words.lengths.take(rows)
        if lengths.max() <= offset:
            return []
        if part == _MAX_PARTS:
            strings = self._data.take(pa.array(rows)).cast(t.BINARY)
            columns = [ranks(Vector(t.BINARY, strings))[0]]
        else:
            columns = [_part_as_integers(self._words, offset, rows)]
            if self._words.has_zeros:
                columns.append(np.clip(lengths - offset, 0, _PART_BYTES))
        valid = self._valid(rows)
        if valid is not None:
            columns = [np.where(valid, column, 0) for column in columns]
        return columns if self._ascending else [~column for column in columns]

    def _valid(self, rows: Int64s) -> npt.NDArray[np.bool_] | None:
        valid = validity(self._data)
        return None if valid is None else valid[rows]


def string_prefixes(data: pa.Array) -> Int64s:
    """Return the first eight bytes of each string as an integer; the integer of NULL is arbitrary.

    A smaller integer means a smaller string. Equal integers say nothing about the order of their strings.
    """
    return _part_as_integers(Words(data), 0, np.arange(len(data)))


def _part_as_integers(words: Words, offset: int, rows: Int64s) -> Int64s:
    """Return the eight bytes at ``offset`` of some rows, as integers in the order of the bytes."""
    return (words.at(offset, rows).byteswap() ^ _SIGN).view(np.int64)
