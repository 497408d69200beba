"""What a source is: a description, never an open reader, that knows its schema and its splits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from kquery_spark.sources.bucketing import Bucketing
from kquery_spark.sources.coded import CodedColumn
from kquery_spark.sources.prefetch.fetching import Release, nothing_to_release
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s

D = TypeVar("D")


@dataclass(frozen=True)
class DataFile:
    """A file as it was when planned: a change of size or time since then is an error, not a wrong answer.

    ``partition``: the plain values of the partition columns (dates as days, times as microseconds), in the
    source's order. ``stamp``: identifies the file under the path (see ``files.stamp_of``), 0 where it is unknown; a cache
    entry of a file is not used for another one with the same path, size and time.
    """

    path: str
    size: int
    modified_ms: int
    partition: tuple[Any, ...] = ()
    stamp: int = 0


@dataclass(frozen=True)
class Split:
    """A part of a source that one task reads as a whole.

    ``file`` indexes the source's files; ``pieces`` are row groups or stripes, or (start, length) of a range.
    ``rows`` and ``nbytes`` are estimates for balancing (bytes: uncompressed, all columns). ``bounds``
    (column, low, high): who reads the split keeps only rows with ``low <= column < high``; None: no bound.
    """

    file: int
    pieces: tuple[int, ...]
    rows: int
    nbytes: int
    bounds: tuple[str, int | None, int | None] | None = None


@dataclass(frozen=True)
class ColumnRange:
    """Smallest and largest value of a column in a split, None when unknown, and its NULL count (or None)."""

    low: Any
    high: Any
    nulls: int | None

    def of_some_rows(self) -> ColumnRange:
        """What holds of some of the rows: the bounds, but not how many are NULL, unless none is."""
        return replace(self, nulls=0 if self.nulls == 0 else None)


@dataclass(frozen=True)
class RowStretches:
    """Value ranges of parts of a split, each a range of consecutive rows.

    starts: the row each one begins with, and at last the number of rows. ranges: by column, one for each stretch.
    """

    starts: Int64s
    ranges: Mapping[str, Sequence[ColumnRange | None]]


@dataclass(frozen=True)
class Source(ABC):
    """Base of all sources; implement ``schema``, ``splits`` and ``read`` and the engine can scan it.

    A source of your own is a frozen dataclass of plain values (so that it can travel to workers, after
    ``stages.serialization.register_serializable``) that opens what it reads in ``read``. Its schema has
    Spark's types: string not large_string, timestamps in microseconds, no unsigned integers. ``read`` is
    called once a split, or once a piece when ``divisible``; a ``columnar`` source may be read again for
    further columns and must then give batches of the same lengths. Give ``ranges`` only when they are
    certain: splits are skipped by them.

    divisible: the pieces of a split can be read one at a time. columnar: reading few columns costs less. addressable: a
    piece is one batch, and ``read_rows`` reads some of its rows.
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
        """The buckets that the files are in; None for a source that is not bucketed."""
        return None

    @abstractmethod
    def splits(self) -> list[Split]:
        """The finest parts that can be read alone, in file order."""

    def splits_of(self, file: int) -> list[Split]:
        """The splits of one file, by its number; a source that can looks at no other file for them."""
        return [split for split in self.splits() if split.file == file]

    @abstractmethod
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows of a split with these columns, in this order; SourceError names what cannot be read."""

    def with_variant_fields(self, fields: Mapping[str, Collection[str]]) -> Source:
        """The source for a scan that needs no more than these fields of the variants in some columns.

        Nothing uses what a source reads beyond them, so giving back the source itself is always right.
        """
        return self

    def under_filters(self, null_filters: bool) -> Source:
        """The source to read where Spark's own read would be filtered, for rows that Spark then reads differently.

        null_filters: some filter lets NULL through.
        """
        return self

    def without_kernels(self) -> Source:
        """The same source without compiled kernels."""
        return self

    def read_rows(self, split: Split, columns: Sequence[str], rows: Int64s) -> Batch:
        """Some rows of a split of one piece, by their numbers in rising order."""
        (batch,) = self.read(split, columns)
        return pick(batch, rows)

    def is_remote(self, split: Split) -> bool:
        """Whether reading a split waits for another filesystem, of which ``fetch`` can ask for it before."""
        return False

    def fetch(self, split: Split, columns: Sequence[str], rows: Int64s | None = None) -> Release:
        """Ask for columns of a split of one piece that is soon read; gives what lets go of them.

        It waits for what has to be known to ask, such as the file's footer, and not for the columns. rows: as in
        ``read_rows``, the only ones that will be read; None for all.
        """
        return nothing_to_release

    def coded(self, split: Split, column: str, rows: Int64s | None = None) -> CodedColumn | None:
        """A column of a split of one piece as codes of its distinct values.

        None where it is not so stored, or where reading just these rows takes less.
        """
        return None

    def stretches(self, split: Split, columns: Sequence[str]) -> RowStretches | None:
        """Statistics of parts of a split of one piece, or None when there are none."""
        return None

    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        """Statistics of one column in a split, or None when there are none."""
        return None

    def has_nulls(self, split: Split, column: str) -> bool:
        """Whether a column may have NULLs in a split, as far as its statistics show."""
        known = self.ranges(split, column)
        return known is None or known.nulls != 0

    def column_bytes(self, columns: Sequence[str]) -> int:
        """Estimated uncompressed bytes of some columns of the whole source."""
        return sum(s.nbytes for s in self.splits())

    def check_files(self, columns: Sequence[str]) -> None:
        """Raise Unsupported or SourceError where reading these columns is sure to fail; data is not read."""
        return None

    def row_count(self) -> int | None:
        """Exact number of rows when it is known without reading data."""
        return None

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, compute: Callable[[], D]) -> D:
        """A value that planning derives from the statistics, cached for the lifetime of this source object."""
        if key not in self._derived:
            self._derived[key] = compute()
        value: D = self._derived[key]
        return value
