"""Decides which adjacent splits a scan reads together.

The Python calls for a row group take as long as decoding the columns of about 100,000 rows, and they hold the interpreter
lock, so the threads of a process wait for each other. Therefore small row groups are coalesced, and each loop takes the
pages of all of them in one call (see docs/parquet-reader.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from kquery_spark.physical.split_columns import SplitColumns
from kquery_spark.run_control import needs_small_batches
from kquery_spark.sources.base import Source, Split
from kquery_spark.sources.dictionary_column import MAX_DICTIONARY_VALUES
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Int64s

MAX_BATCHES = 4
"""Coalesced splits have at most this many times the rows of a batch."""
_MAX_BYTES = 64 << 20  # the decoded values of coalesced splits take at most this memory, by estimates
_MAX_SPLITS = 1024


class SplitRead(NamedTuple):
    """One read of a scan: of a single split, or of several coalesced ones.

    singles: the splits of the read. split: the split that coalesces them; if there is only one, that split itself. rows: the
    rows that statistics do not exclude; None for all rows, and always for coalesced splits.
    """

    singles: Sequence[Split]
    split: Split
    rows: Int64s | None


class SplitCoalescer:
    """Coalesces splits of one scan. The sizes of the splits that were read limit how many of the next ones are coalesced.

    columns: all columns that the scan reads. row_bytes: the bytes of a row's fixed-width values. batch_rows: the rows of a
    batch.
    """

    def __init__(self, source: Source, columns: Sequence[str], row_bytes: int, batch_rows: int) -> None:
        self._source = source
        self._columns = columns
        self._max_rows = batch_rows if needs_small_batches() else MAX_BATCHES * batch_rows
        # It starts with one and doubles each time, so that a query with a LIMIT reads little more than it needs.
        self._max_splits = 1
        self._row_bytes: float = row_bytes
        self._largest_dictionary = 0  # the number of values in the dictionary of a single split

    def coalesce(
        self, splits: Sequence[Split], at: int, reads_all_rows: Callable[[Split], bool]
    ) -> tuple[Split, int]:
        """Coalesce the split at a position with those after it. Returns the coalesced split and the number of its splits.

        reads_all_rows: returns True if statistics exclude no row of a split; other splits are read alone. It is called only
        for splits that the source can coalesce, because it takes longer than all other checks, and at most twice for each.
        """
        if self._max_splits == 1:
            self._max_splits = 2
            return splits[at], 1
        candidates = list(self._candidates(splits, at))
        coalesced, count = self._source.coalesce(candidates, self._columns)
        whole = 1 + sum(1 for _ in takewhile(reads_all_rows, candidates[1:count]))
        if whole < count:
            coalesced, count = self._source.coalesce(candidates[:whole], self._columns)
        if count > 1:
            self._max_splits = min(2 * self._max_splits, _MAX_SPLITS)
        return coalesced, count

    def _candidates(self, splits: Sequence[Split], at: int) -> Iterator[Split]:
        """Yield the split at a position, and those after it, up to the limits of coalesced splits."""
        first = splits[at]
        rows = nbytes = values = 0
        for split in islice(splits, at, at + self._max_splits):
            rows, nbytes, values = rows + split.rows, nbytes + split.nbytes, values + self._largest_dictionary
            is_large = rows > self._max_rows or max(nbytes, rows * self._row_bytes) > _MAX_BYTES
            # The loops that evaluate conditions on concatenated dictionaries use 16-bit indices.
            if split is not first and (
                split.file != first.file or is_large or values > MAX_DICTIONARY_VALUES
            ):
                return
            yield split

    def observe_batch(self, batch: Batch) -> None:
        """Record the bytes per row of a batch that was read without filters."""
        self._observe(sum(column.nbytes for column in batch.columns), batch.num_rows)

    def observe(self, split: Split, read: SplitColumns) -> None:
        """Record the bytes per row and the dictionary sizes of a split whose rows were filtered."""
        self._observe(read.decoded_bytes, split.rows)
        values = read.largest_dictionary // len(split.pieces)
        self._largest_dictionary = max(self._largest_dictionary, values)

    def _observe(self, nbytes: int, rows: int) -> None:
        if rows:
            self._row_bytes = max(self._row_bytes, nbytes / rows)
