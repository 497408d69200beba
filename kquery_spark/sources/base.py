"""Sources: immutable descriptions of tables that know their schema and their splits. They hold no open readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.bucketing import Bucketing
from kquery_spark.sources.dictionary_column import DictionaryColumn
from kquery_spark.sources.prefetch.fetching import Release, nothing_to_release
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s

D = TypeVar("D")


OPENING_BYTES = 64 << 10
"""Opening a file takes as long as decoding this number of bytes."""


@dataclass(frozen=True)
class DataFile:
    """A file as the planner saw it. If its size or time has changed when it is read, the query fails.

    partition: the plain values of the partition columns (dates as days, timestamps as microseconds), in the source's order.
    stamp: identifies the file behind the path (see ``files.stamp_of``), 0 if unknown. Cache entries are not shared between
    two files with the same path, size, and time but different stamps.
    """

    path: str
    size: int
    modified_ms: int
    partition: tuple[Any, ...] = ()
    stamp: int = 0


@dataclass(frozen=True)
class Split:
    """A part of a source that one task reads as a unit.

    file: index among the source's files. pieces: row groups or stripes, or (start, length) of a byte range.
    rows, nbytes: estimates for balancing the tasks (bytes are uncompressed and cover all columns).
    bounds: (column, low, high); the scan keeps only rows with ``low <= column < high``. None: all rows.
    """

    file: int
    pieces: tuple[int, ...]
    rows: int
    nbytes: int
    bounds: tuple[str, int | None, int | None] | None = None


@dataclass(frozen=True)
class ColumnRange:
    """Minimum, maximum, and NULL count of a column in a split; each is None if unknown."""

    low: Any
    high: Any
    nulls: int | None

    def for_row_subset(self) -> ColumnRange:
        """Return statistics that also hold for a subset of the rows: the bounds, and the NULL count only if it is 0."""
        return replace(self, nulls=0 if self.nulls == 0 else None)


@dataclass(frozen=True)
class PageStatistics:
    """Column statistics for consecutive row ranges of a split, usually the pages of a Parquet row group.

    starts: the first row of each range, followed by the number of rows of the split.
    ranges: for each column, the statistics of every range.
    """

    starts: Int64s
    ranges: Mapping[str, Sequence[ColumnRange | None]]


@dataclass(frozen=True)
class Source(ABC):
    """Base class of all sources. Implement ``schema``, ``splits``, and ``read``, and the engine can scan it.

    A custom source is a frozen dataclass of plain values, so that it can be sent to workers (after
    ``stages.serialization.register_serializable``); it opens files in ``read``. Its schema uses Spark's types: string rather
    than large_string, timestamps in microseconds, no unsigned integers. ``read`` is called once per split, or once per
    piece if the source is ``divisible`` (once for all pieces that ``coalesce`` combines). A ``columnar`` source may be read
    again for further columns and must then return batches of the same lengths. Return ``ranges`` only if they are certain,
    because splits are pruned by them.

    divisible: the pieces of a split can be read one at a time.
    columnar: reading fewer columns costs less.
    addressable: a piece is one batch, and ``read_rows`` reads a subset of its rows.
    """

    divisible: ClassVar[bool] = False
    columnar: ClassVar[bool] = False
    addressable: ClassVar[bool] = False

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Columns with Spark types and nullability."""

    @property
    def bucketing(self) -> Bucketing | None:
        """The bucketing of the files; None if the table is not bucketed."""
        return None

    @abstractmethod
    def splits(self) -> list[Split]:
        """Return the smallest units that can be read independently, in file order."""

    def splits_of(self, file: int) -> list[Split]:
        """Return the splits of one file, given by index, without opening other files if the source can."""
        return [split for split in self.splits() if split.file == file]

    @abstractmethod
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        """Yield the rows of a split with these columns, in this order. Raises SourceError, which names the file."""

    def sample_parts(self, split: Split, count: int) -> list[Split]:
        """Return up to ``count`` parts of a split for a sample of its values; empty if sampling the split would take long.

        A part is also a ``Split``. If the source is not ``columnar``, only the first batch of each part is read.
        """
        if not self.divisible:
            return [split]
        pieces = len(split.pieces)
        return [
            replace(split, pieces=split.pieces[:1], rows=split.rows // pieces, nbytes=split.nbytes // pieces)
        ]

    def with_variant_fields(self, fields: Mapping[str, Collection[str]]) -> Source:
        """Return the source for a scan that needs only these fields of the variants in some columns.

        Returning the source itself is always right, because no operator uses other fields.
        """
        return self

    def under_filters(self, null_filters: bool) -> Source:
        """Return the source to use if Spark would filter this scan, for formats in which Spark then reads rows differently.

        null_filters: True if some filter passes NULL.
        """
        return self

    def without_kernels(self) -> Source:
        """Return the same source without compiled kernels."""
        return self

    def coalesce(self, splits: Sequence[Split], columns: Sequence[str]) -> tuple[Split, int]:
        """Coalesce the first split with as many of the next ones as the source can read together.

        Returns the coalesced split, which ``read`` returns as one batch, and of how many splits it consists. Small pieces
        cost more per row, so this saves time. splits: splits of one piece each, all of the same file. columns: all columns
        that will be read.
        """
        return splits[0], 1

    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        """Read some rows of a split of one piece, or of a coalesced split, by their positions in rising order."""
        (batch,) = self.read(split, columns)
        return pick(batch, rows)

    @property
    def holds_rows(self) -> bool:
        """True if the source stores or caches rows, so that a cached query must not keep it in memory."""
        return False

    def is_remote(self, split: Split) -> bool:
        """True if the split is on a remote filesystem, so that calling ``fetch`` early saves time."""
        return False

    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        """Request columns of a split of one piece, or of a coalesced split, that will be read soon.

        Returns the function that releases them. Waits for the metadata that the requests need, such as the file's footer,
        but not for the columns.
        rows: positions of the rows that will be read, as in ``read_rows``; None for all rows.
        """
        return nothing_to_release

    def dictionary_column(
        self, split: Split, column: str, rows: Int64s | None = None
    ) -> DictionaryColumn | None:
        """Return a column of a split of one piece, or of a coalesced split, as a dictionary and indices.

        None if the column is not stored with a dictionary, or if reading ``rows`` alone is cheaper.
        """
        return None

    def page_statistics(self, split: Split, columns: Sequence[str]) -> PageStatistics | None:
        """Return statistics of row ranges within a split, or None if there are none. Coalesced splits have none."""
        return None

    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        """Return the statistics of one column in a split, or None. A coalesced split has only the number of NULLs."""
        return None

    def has_nulls(self, split: Split, column: str) -> bool:
        """True unless statistics show that the column has no NULL in the split."""
        known = self.ranges(split, column)
        return known is None or known.nulls != 0

    def column_bytes(self, columns: Sequence[str]) -> int:
        """Estimate the uncompressed bytes of some columns of the whole source."""
        return sum(s.nbytes for s in self.splits())

    def check_files(self, columns: Sequence[str]) -> None:
        """Raise Unsupported or SourceError if reading these columns is sure to fail. Reads no data."""
        return None

    def row_count(self) -> int | None:
        """Return the exact number of rows if it is known without reading data, else None."""
        return None

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, compute: Callable[[], D]) -> D:
        """Return a value that depends only on this source, such as one from statistics. It is computed once per object."""
        if key not in self._derived:
            self._derived[key] = compute()
        value: D = self._derived[key]
        return value
