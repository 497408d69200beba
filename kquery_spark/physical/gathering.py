"""Limits the bytes of rows that joins and generators copy at once: a long string can be part of a million pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.physical.pairs import pair_slices
from kquery_spark.types.sizes import has_offsets, row_bytes
from kquery_spark.types.vector import Int64s

MAX_GATHERED_BYTES = 128 << 20


class RowSizes:
    """The bytes of each row in those columns whose values differ in size, such as strings. Computed on first use."""

    def __init__(self, columns: Iterable[pa.Array]) -> None:
        self._columns = [c for c in columns if len(c) and has_offsets(c.type)]

    @cached_property
    def total(self) -> int:
        """The bytes of all rows, which no row exceeds."""
        return sum(c.nbytes for c in self._columns)

    @cached_property
    def largest(self) -> int:
        """A number of bytes that no row exceeds."""
        return sum(int(row_bytes(c).max()) for c in self._columns)

    @cached_property
    def by_row(self) -> Int64s | None:
        """The bytes of each row; None if all columns have a fixed size."""
        return (
            sum((row_bytes(c) for c in self._columns[1:]), row_bytes(self._columns[0]))
            if self._columns
            else None
        )


def gather_slices(sources: Sequence[tuple[RowSizes, Int64s]], count: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (start, stop) of output rows that take at most MAX_GATHERED_BYTES, or of a single row.

    sources: the sizes of input rows, and the input row of each of the ``count`` output rows; -1 for no row.
    """
    # Two upper bounds avoid the exact sizes in most cases. The first one costs nothing, the second one a pass over the rows.
    if count * sum(sizes.total for sizes, _ in sources) > MAX_GATHERED_BYTES and (
        count * sum(sizes.largest for sizes, _ in sources) > MAX_GATHERED_BYTES
    ):
        nbytes = np.zeros(count, np.int64)
        for sizes, rows in sources:
            if sizes.by_row is not None:
                nbytes += np.where(rows < 0, 0, sizes.by_row[rows])
        yield from pair_slices(nbytes, MAX_GATHERED_BYTES)
    elif count:
        yield 0, count
