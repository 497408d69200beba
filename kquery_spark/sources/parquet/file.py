"""An open Parquet file: its parsed footer, the facts about columns that follow from it, and reads of row groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import SourceError
from kquery_spark.sources.base import ColumnRange, DataFile
from kquery_spark.sources.dictionary_column import Indices
from kquery_spark.sources.input_file import InputFile, shared_input
from kquery_spark.sources.parquet.calendar import (
    CORRECTED,
    DATE,
    INT96,
    SPARK_VERSION_KEY,
    TIMESTAMP,
    ColumnRebase,
    RebaseSettings,
    TimeLeaf,
    may_be_old,
    time_leaves,
)
from kquery_spark.sources.parquet.checked_footer import checked_reader
from kquery_spark.sources.parquet.chunk_pages import ChunkPages
from kquery_spark.sources.parquet.column_reader import ColumnReader, FlatChunk, flat_chunk
from kquery_spark.sources.parquet.footer import (
    plain_integers,
    read_footer,
)
from kquery_spark.sources.parquet.leaves import Leaf, column_leaves, may_exceed_type
from kquery_spark.sources.parquet.pages import PagedColumn, file_of_pages
from kquery_spark.sources.parquet.stored_chunks import StoredChunks, range_of
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ByteReader
from kquery_spark.sources.prefetch.fetched_pieces import FetchedPieces
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.sources.prefetch.read_counts import count_read
from kquery_spark.types import names as t

_DICTIONARY_BYTES_PER_VALUE = 3.0
_MAX_SECONDS = (2**63 - 1) // 1_000_000  # the largest time that fits into 64-bit microseconds
# Measured: 17 KB for a file of three columns, 944 KB for one whose footer of 116 KB describes 1,000 chunks.
_BYTES_OF_A_FILE, _FOOTER_EXPANSION = 12 << 10, 8


@dataclass(frozen=True)
class Typed:
    """A column as read, and its type in the file. A decimal column may be stored as its unscaled integers."""

    dtype: pa.DataType
    data: pa.ChunkedArray


class OpenFile:
    """An open Parquet file: its parsed footer, which the worker caches between tasks, and its reader.

    Reading is not thread-safe in pyarrow, so each thread gets a reader of its own over the shared footer and handle.
    """

    def __init__(self, file: DataFile) -> None:
        self.file = file
        reader = self._reader_of_footer()
        self.metadata: Any = reader.metadata
        self._key_values: dict[bytes, bytes] = self.metadata.metadata or {}
        self._leaves = [self.metadata.schema.column(i) for i in range(self.metadata.num_columns)]
        # Only top-level leaves are flat columns: field b of struct a has the path a.b, which may also be the name of a
        # column. A repeated leaf is a list; its statistics describe the elements, not the rows.
        self._flat = {
            leaf.path: i
            for i, leaf in enumerate(self._leaves)
            if leaf.name == leaf.path and leaf.max_repetition_level == 0
        }
        self.schema: pa.Schema = reader.schema_arrow
        self.int96 = {leaf.path for leaf in self._leaves if leaf.physical_type == "INT96"}
        self.names = set(self.schema.names)
        self._nbytes: dict[str, int] = {}
        self._ranges: dict[str, list[ColumnRange | None] | None] = {}
        self._flat_chunks: dict[tuple[int, str], FlatChunk | None] = {}
        self._old_times: dict[str, dict[int, TimeLeaf]] = {}
        self._exceeding: dict[str, bool] = {}
        self._dictionaries = self._low_cardinality()
        self._chunks = StoredChunks(self.metadata, [leaf.path for leaf in self._leaves])
        self._fetched = FetchedPieces(file)
        self.pages = ChunkPages(
            file, self.metadata, self.schema, self._flat, lambda: self._footer, self._reader_of_chunks
        )

    def _reader_of_footer(self) -> pq.ParquetFile:
        """A reader with the checked footer. Without a plain footer, pyarrow opens the file, to raise its own error."""
        file, footer = self._input, self._footer
        try:
            if footer is None:
                file.open_reader("Parquet", lambda: pq.ParquetFile(file.native))
                raise ValueError("it has no plain footer")
            return file.open_reader("Parquet", lambda: checked_reader(footer, file.size()), checked=True)
        except ValueError as error:
            raise SourceError(f"cannot read {self.file.path} as Parquet: {error}") from None

    @property
    def nbytes(self) -> int:
        """Estimated memory of the parsed footer and of everything that is derived from it, for the cache."""
        return _BYTES_OF_A_FILE + _FOOTER_EXPANSION * int(self.metadata.serialized_size)

    @property
    def by_parquet_java(self) -> bool:
        """True if Parquet's Java library wrote the file, as in Spark; INT96 times of these files are never converted."""
        return str(self.metadata.created_by).startswith("parquet-mr")

    @cached_property
    def shared_paths(self) -> set[str]:
        """Paths that several leaves share, for example field ``b`` of struct ``a`` and a column named ``a.b``."""
        return {path for path, count in Counter(leaf.path for leaf in self._leaves).items() if count > 1}

    @cached_property
    def brotli(self) -> set[str]:
        """Columns with a leaf that is compressed with Brotli in the first row group."""
        if not self.metadata.num_row_groups:
            return set()
        group = self.metadata.row_group(0)
        return {
            leaf.path.split(".", 1)[0]
            for i, leaf in enumerate(self._leaves)
            if group.column(i).compression == "BROTLI"
        }

    @cached_property
    def ambiguous(self) -> set[str]:
        """Lower-case names that several columns share."""
        folded = Counter(name.lower() for name in self.schema.names)
        return {name for name, count in folded.items() if count > 1}

    @cached_property
    def _physical(self) -> Any:
        """The metadata that readers get: decimals of up to 18 digits are declared as integers, which the engine uses."""
        if not any(pa.types.is_decimal(field.type) and field.type.precision <= 18 for field in self.schema):
            return self.metadata
        return (self._footer and plain_integers(self._footer)) or self.metadata

    @cached_property
    def _stored_schema(self) -> pa.Schema:
        """The Arrow schema that readers return, with short decimals as integers."""
        schema: pa.Schema = self._physical.schema.to_arrow_schema()
        return schema

    @cached_property
    def _footer(self) -> bytes | None:
        return read_footer(self._input)

    @property
    def _input(self) -> InputFile:
        return shared_input(self.file)

    def _open(self, file: Any, int96_unit: str = "us") -> pq.ParquetFile:
        """Open a reader of an open file that uses the prepared metadata."""
        return pq.ParquetFile(
            file,
            metadata=self._physical,
            read_dictionary=self._dictionaries,
            coerce_int96_timestamp_unit=int96_unit,
            pre_buffer=False,
        )

    def typed(self, column: str, data: pa.ChunkedArray, dtype: pa.DataType) -> Typed:
        """Attach the column's type in the file to its data.

        Short decimals were read as integers and stay integers. INT96 times are instants, but Arrow reads them as
        wall-clock times, so they get the table's type here.
        """
        if column in self.int96 and t.is_timestamp(dtype):
            return Typed(dtype, pa.chunked_array([c.view(dtype) for c in data.chunks], dtype))
        given = self.schema.field(column).type
        return Typed(given if pa.types.is_decimal(given) else data.type, data)

    def has_instants(self, column: str) -> bool:
        """True if the column or one of its leaves has INT96 times."""
        return any(path == column or path.startswith(f"{column}.") for path in self.int96)

    def rebase(self, column: str, settings: RebaseSettings) -> ColumnRebase | None:
        """How old dates and times of a column are rebased; None if the column certainly needs no rebase."""
        datetime, int96 = settings.modes(self._key_values)
        if datetime == int96 == CORRECTED or column not in self._times:
            return None
        modes = {DATE: datetime, TIMESTAMP: datetime, INT96: int96}
        if all(modes[leaf.kind] == CORRECTED for leaf in self._old(column).values()):
            return None
        name = settings.zone_of(self._key_values)
        zone = next((zone for zone in settings.zones if zone.name == name), None)
        return ColumnRebase(self._old(column), modes, zone)

    def zone_of(self, settings: RebaseSettings) -> str | None:
        """The time zone by which old times are rebased; None if it is unknown."""
        return settings.zone_of(self._key_values)

    @cached_property
    def _times(self) -> dict[str, dict[int, TimeLeaf]]:
        return time_leaves(self.schema, self._leaves)

    def _old(self, column: str) -> dict[int, TimeLeaf]:
        """The leaves of a column that may have values before the calendar change, by their numbers in the column."""
        old_leaves = self._old_times.get(column)
        if old_leaves is None:
            groups = [self.metadata.row_group(g) for g in range(self.metadata.num_row_groups)]
            times = self._times[column].items()
            old_leaves = {index: leaf for index, leaf in times if may_be_old(leaf, groups)}
            self._old_times[column] = old_leaves
        return old_leaves

    def may_exceed_type(self, column: str) -> bool:
        """True if a leaf of the column may store numbers outside the range of its declared type."""
        exceeds = self._exceeding.get(column)
        if exceeds is None:
            groups = [self.metadata.row_group(g) for g in range(self.metadata.num_row_groups)]
            by_spark = SPARK_VERSION_KEY in self._key_values
            exceeds = any(may_exceed_type(leaf, groups, by_spark) for leaf in self._column_leaves[column])
            self._exceeding[column] = exceeds
        return exceeds

    @cached_property
    def _column_leaves(self) -> dict[str, list[Leaf]]:
        return column_leaves(self.schema)

    def flat(self, column: str) -> Any | None:
        """pyarrow's ``ColumnSchema`` of a flat column; None for other columns."""
        leaf_index = self._flat.get(column)
        return None if leaf_index is None else self._leaves[leaf_index]

    @cached_property
    def groups(self) -> list[tuple[int, int]]:
        """Rows and uncompressed bytes of each row group."""
        groups = map(self.metadata.row_group, range(self.metadata.num_row_groups))
        return [(group.num_rows, group.total_byte_size) for group in groups]

    def column_bytes(self, column: str) -> int:
        """Uncompressed bytes of a column in all row groups, summed over its leaves."""
        nbytes = self._nbytes.get(column)
        if nbytes is None:
            paths = (leaf.path for leaf in self._leaves)
            leaf_indexes = [i for i, p in enumerate(paths) if p == column or p.startswith(f"{column}.")]
            groups = range(self.metadata.num_row_groups) if leaf_indexes else ()
            nbytes = sum(
                self.metadata.row_group(g).column(p).total_uncompressed_size
                for g in groups
                for p in leaf_indexes
            )
            self._nbytes[column] = nbytes
        return nbytes

    def column_ranges(self, column: str) -> list[ColumnRange | None] | None:
        """Statistics of each row group; None for columns that are not flat."""
        if column not in self._ranges:
            leaf_index = self._flat.get(column)
            self._ranges[column] = (
                None
                if leaf_index is None
                else [
                    _range(self.metadata.row_group(g).column(leaf_index))
                    for g in range(self.metadata.num_row_groups)
                ]
            )
        return self._ranges[column]

    def _low_cardinality(self) -> list[str]:
        """String columns to read as dictionaries: dictionary-encoded, and below 3 bytes per value in the first row group."""
        columns = []
        for field in self.schema:
            leaf_index = self._flat.get(field.name)
            flat = pa.types.is_string(field.type) or pa.types.is_string_view(field.type)
            if leaf_index is None or not flat or self.metadata.num_row_groups == 0:
                continue
            chunk = self.metadata.row_group(0).column(leaf_index)
            encoded = "RLE_DICTIONARY" in chunk.encodings or "PLAIN_DICTIONARY" in chunk.encodings
            if encoded and chunk.total_uncompressed_size < _DICTIONARY_BYTES_PER_VALUE * max(
                chunk.num_values, 1
            ):
                columns.append(field.name)
        return columns

    def hold(self, group: int, columns: Sequence[str], pages: Sequence[PagedColumn] = ()) -> Release:
        """Prefetch columns of a row group from a remote filesystem; returns a function that releases the bytes.

        columns: are fetched whole. pages: of other columns, only these pages are fetched.
        """
        paged = [part for column in pages for part in column.byte_ranges]
        return self._fetched.hold(group, [*self._chunks.byte_ranges(group, columns), *paged])

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Columns of one row group."""
        file = self._input
        try:
            if not file.is_local:
                fetched = self._fetched.fetched(group, self._chunks.byte_ranges(group, columns)).as_file()
                return self._read(group, columns, partial(self._open, fetched))
            table = self._read(group, columns, partial(self._reader_of_thread, file))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._unreadable(group, error) from None
        for chunk in self._chunks.byte_ranges(group, columns):
            count_read(chunk.size)
        file.check_unchanged()
        return table

    def _read(self, group: int, columns: Sequence[str], reader: Callable[[str], pq.ParquetFile]) -> pa.Table:
        """Columns of one row group, checked. reader: opens a reader that returns INT96 times in a unit."""
        table = reader("us").read_row_group(group, columns=list(columns), use_threads=False)
        for column in self.int96.intersection(columns):
            _check_int96(reader("s"), group, column)
        for column in set(self._dictionaries).intersection(columns):
            _check_indices(table[column])
        rows = self.groups[group][0]
        if table.num_columns and table.num_rows != rows:
            raise ValueError(f"its columns have {table.num_rows} rows instead of {rows}")
        return table

    def _reader_of_thread(self, file: InputFile, int96_unit: str) -> pq.ParquetFile:
        """This thread's cached reader for a unit of INT96 times."""
        name = f"parquet_{int96_unit}"
        reader: pq.ParquetFile | None = getattr(file.readers, name, None)
        if reader is None:
            reader = self._open(file.native, int96_unit)
            setattr(file.readers, name, reader)
        return reader

    def _reader_of_chunks(self, group: int, columns: Sequence[str]) -> ByteReader:
        """A reader of the chunks of these columns by file position."""
        return self._reader_of(group, self._chunks.byte_ranges(group, columns))

    def _reader_of(self, group: int, parts: Sequence[ByteRange]) -> ByteReader:
        """A reader of byte ranges of a row group by file position; remote ranges are fetched first."""
        return self._input if self._input.is_local else self._fetched.fetched(group, parts)

    def read_pages(self, group: int, columns: Sequence[PagedColumn]) -> list[pa.ChunkedArray]:
        """Decode all rows of these pages; one array per column, of different lengths."""
        names = [c.name for c in columns]
        has_schema = b"ARROW:schema" in (self.metadata.metadata or {})
        schema = pa.schema([self.schema.field(n) for n in names]) if has_schema else None
        try:
            stored = self._reader_of(group, [part for column in columns for part in column.byte_ranges])
            file = file_of_pages(stored, columns, schema)
            reader = _reader_of_pages(file, [n for n in names if n in self._dictionaries])
            for name in self.int96.intersection(names):
                _check_int96(_reader_of_pages(file, [], "s"), 0, name)
            arrays = [reader.read_row_group(0, columns=[n], use_threads=False).column(0) for n in names]
            for data in arrays:
                _check_indices(data)
            if any(len(data) != c.selection.lengths.sum() for data, c in zip(arrays, columns, strict=True)):
                raise ValueError("its pages have other numbers of rows than its page index says")
            return arrays
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._unreadable(group, error) from None

    def column_readers(
        self, group: int, columns: Sequence[str], kernels: ModuleType | None
    ) -> dict[str, ColumnReader]:
        """Read the chunks of those columns that the compiled loops can decode; none without kernels."""
        chunks = {} if kernels is None else {c: self._flat_chunk(group, c) for c in columns}
        readable = {column: chunk for column, chunk in chunks.items() if chunk is not None}
        if kernels is None or not readable:
            return {}
        reader = self._reader_of(group, [chunk.byte_range for chunk in readable.values()])
        try:
            return {
                column: ColumnReader(
                    chunk, kernels, reader.read_at(chunk.byte_range.size, chunk.byte_range.start)
                )
                for column, chunk in readable.items()
            }
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._unreadable(group, error) from None

    def may_have_small_dictionary(self, group: int, column: str) -> bool:
        """False if a chunk certainly has no dictionary on which the compiled loops can evaluate conditions."""
        chunk = self._flat_chunk(group, column)
        return chunk is not None and chunk.may_have_small_dictionary

    def is_read_faster(self, group: int, column: str) -> bool:
        """True if the compiled loops read all rows faster than pyarrow: low-cardinality strings only."""
        return column in self._dictionaries and column in self._flat

    def _flat_chunk(self, group: int, column: str) -> FlatChunk | None:
        """Describe a chunk for the compiled loops; None if only pyarrow can read it."""
        key = (group, column)
        if key not in self._flat_chunks:
            self._flat_chunks[key] = self._find_flat_chunk(group, column)
        return self._flat_chunks[key]

    def _find_flat_chunk(self, group: int, column: str) -> FlatChunk | None:
        leaf_index = self._flat.get(column)
        if leaf_index is None:
            return None
        chunk, dtype = (
            self.metadata.row_group(group).column(leaf_index),
            self._stored_schema.field(column).type,
        )
        if column in self._dictionaries:
            dtype = pa.dictionary(pa.int32(), dtype)
        return flat_chunk(chunk, self._leaves[leaf_index], dtype, self.groups[group][0], range_of(chunk))

    def look_up_indices(self, group: int, column: str, values: pa.Array) -> Indices:
        """Find the dictionary indices of a chunk that the loops cannot unpack, from the values that pyarrow decodes.

        ``len(values)`` is the index of NULL. Raises SourceError for a corrupt chunk.
        """
        # compares bit patterns instead of numbers, so that NaN equals NaN and -0.0 differs from 0.0
        bits = pa.int32() if values.type.bit_width == 32 else pa.int64()
        data = self.read(group, [column]).column(0).combine_chunks().view(bits)
        indices = pc.index_in(data, value_set=pa.concat_arrays([values.view(bits), pa.nulls(1, bits)]))
        if indices.null_count:
            raise self._unreadable(group, ValueError(f"column {column} has values that its dictionary lacks"))
        positions: Indices = indices.to_numpy().astype(np.uint16)
        return positions

    def _unreadable(self, group: int, error: BaseException) -> SourceError:
        cause = self._input.change or error
        return SourceError(f"cannot read row group {group} of {self.file.path}: {cause}")


def _reader_of_pages(data: pa.Buffer, dictionaries: Sequence[str], int96_unit: str = "us") -> pq.ParquetFile:
    """A reader of a file that ``file_of_pages`` built."""
    return pq.ParquetFile(
        pa.BufferReader(data), read_dictionary=list(dictionaries), coerce_int96_timestamp_unit=int96_unit
    )


def _check_indices(column: pa.ChunkedArray) -> None:
    """Raise ValueError for dictionary indices past the end of the dictionary, which pyarrow does not check."""
    for chunk in column.chunks if pa.types.is_dictionary(column.type) else ():
        highest = pc.max(
            chunk.indices.view(pa.uint32())
        ).as_py()  # as unsigned integers, negative ones are large
        if highest is not None and highest >= len(chunk.dictionary):
            raise ValueError("a page has indices that its dictionary lacks")


def _check_int96(in_seconds: pq.ParquetFile, group: int, column: str) -> None:
    """Raise ValueError for INT96 times with a negative day number, which Arrow reads as an unsigned one.

    In microseconds these times overflow and look like any other. In seconds they do not overflow and are far outside
    the range of 64-bit microseconds, so the column is read a second time in seconds.
    """
    seconds = in_seconds.read_row_group(group, columns=[column], use_threads=False).column(0)
    last = pc.max(seconds.cast(pa.int64())).as_py()
    if last is not None and last > _MAX_SECONDS:
        raise ValueError(
            f"column {column} has INT96 times before 4713 BC or past the year 285,000, which pyarrow misreads"
        )


def _range(chunk: Any) -> ColumnRange | None:
    statistics = chunk.statistics
    if statistics is None:
        return None
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return ColumnRange(None, None, nulls)
    try:
        return ColumnRange(statistics.min, statistics.max, nulls)
    except (OverflowError, ValueError, NotImplementedError):
        # dates outside Python's range, strings that are not UTF-8, or decimals, which old releases of Arrow do not read
        return ColumnRange(None, None, nulls)
