"""Decides which adjacent splits a scan reads together.

The Python calls for a row group take as long as decoding its columns if it has some 100,000 rows. The threads of a process
also wait for each other in these calls. So small row groups are joined, and the loops take the pages of all of them in one
call (see docs/parquet-reader.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kquery_spark.physical.split_columns import SplitColumns
from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.dictionary_column import MAX_DICTIONARY_VALUES
from kquery_spark.types.batch import Batch

_BATCHES = 4  # joined splits have at most this many times the rows of a batch
_MAX_BYTES = 64 << 20  # of their decoded values


class SplitJoiner:
    """Joins splits of one scan. What it has observed about the splits that were read limits the next ones.

    columns: all columns that the scan reads. row_bytes: the bytes of a row's fixed-width values. batch_rows: the rows of a
    batch.
    """

    def __init__(self, source: Source, columns: Sequence[str], row_bytes: int, batch_rows: int) -> None:
        self._source = source
        self._columns = columns
        self._max_rows = _BATCHES * batch_rows
        # It starts with one and doubles, so that a query with a LIMIT reads little more than it needs.
        self._max_splits = 1
        self._row_bytes: float = row_bytes
        self._largest_dictionary = 0  # the number of values in the dictionary of a single split

    def join(self, first: Split, others: Sequence[Split], is_whole: Callable[[Split], bool]) -> Split:
        """Join a split with the first of the splits that follow. is_whole: whether all rows of a split must be read."""
        together = [first, *self._candidates(first, others[: self._max_splits - 1], is_whole)]
        self._max_splits *= 2
        return self._source.join(together, self._columns) if len(together) > 1 else first

    def _candidates(
        self, first: Split, others: Sequence[Split], is_whole: Callable[[Split], bool]
    ) -> Iterator[Split]:
        rows, nbytes, values = first.rows, first.nbytes, self._largest_dictionary
        for split in others:
            rows, nbytes, values = rows + split.rows, nbytes + split.nbytes, values + self._largest_dictionary
            is_large = rows > self._max_rows or max(nbytes, rows * self._row_bytes) > _MAX_BYTES
            # joined dictionaries of conditions have indices of 16 bits
            if is_large or values > MAX_DICTIONARY_VALUES or not is_whole(split):
                return
            yield split

    def observe_batch(self, batch: Batch) -> None:
        """Take account of the size of all rows of a split."""
        self._observe(sum(column.nbytes for column in batch.columns), batch.num_rows)

    def observe(self, split: Split, read: SplitColumns) -> None:
        """Take account of the dictionaries and of the size of the columns that were read of a split."""
        self._observe(read.decoded_bytes, split.rows)
        values = read.largest_dictionary // len(split.pieces)
        self._largest_dictionary = max(self._largest_dictionary, values)

    def _observe(self, nbytes: int, rows: int) -> None:
        if rows:
            self._row_bytes = max(self._row_bytes, nbytes / rows)
