"""An open Parquet file: reads row groups with pyarrow, and prepares chunks for the compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kquery_spark.errors import SourceError
from kquery_spark.sources.base import DataFile
from kquery_spark.sources.dictionary_column import Indices
from kquery_spark.sources.input_file import InputFile
from kquery_spark.sources.parquet.calendar import RebaseSettings
from kquery_spark.sources.parquet.chunk_pages import ChunkPages
from kquery_spark.sources.parquet.column_reader import ColumnReader
from kquery_spark.sources.parquet.flat_chunk import FlatChunk, flat_chunk
from kquery_spark.sources.parquet.int96 import check_int96, int96_times
from kquery_spark.sources.parquet.pages import PagedColumn, file_of_pages
from kquery_spark.sources.parquet.parsed_footer import ParsedFooter
from kquery_spark.sources.parquet.stored_chunks import StoredChunks, range_of
from kquery_spark.sources.parquet.value_counts import check_value_counts, has_exact_counts
from kquery_spark.sources.prefetch.byte_ranges import ByteRange, ByteReader
from kquery_spark.sources.prefetch.fetched_pieces import FetchedPieces
from kquery_spark.sources.prefetch.fetched_ranges import FetchedRanges
from kquery_spark.sources.prefetch.fetching import Release
from kquery_spark.sources.prefetch.read_counts import count_read
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, narrow

# The loops read chunks of local files below this stored size as a whole instead of by pages.
_MIN_PAGED_BYTES_IN_LOOPS = 8 << 20
_MAX_COALESCED_CHUNK_BYTES = 8 << 20  # larger chunks are read alone, perhaps by pages
_STRING_DICTIONARY = pa.dictionary(pa.int32(), t.STRING)
_BIT_TYPES = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64(), 128: pa.binary(16)}


@dataclass(frozen=True)
class TypedColumn:
    """A column as read, and its type in the file. A decimal column may be stored as its unscaled integers."""

    dtype: pa.DataType
    data: pa.ChunkedArray


class OpenFile(ParsedFooter):
    """An open Parquet file, which the worker caches between tasks: its parsed footer, and methods that read row groups.

    Reading is not thread-safe in pyarrow, so each thread gets a reader of its own over the shared footer and handle.
    """

    def __init__(self, file: DataFile) -> None:
        super().__init__(file)
        self._flat_chunks: dict[tuple[int, str], FlatChunk | None] = {}
        self._coalescible_kinds: dict[tuple[int, str], Hashable] = {}
        self._kinds: dict[Hashable, Hashable] = {}
        self._in_engine_form: dict[tuple[str, pa.DataType, pa.DataType, RebaseSettings], bool] = {}
        self._paths = [leaf.path for leaf in self._leaves]
        self._has_exact_counts = has_exact_counts(str(self.metadata.created_by))
        self._chunks = StoredChunks(self.metadata, self._paths)
        self._fetched = FetchedPieces(file)
        self.pages = ChunkPages(
            file,
            self.metadata,
            self.schema,
            self._flat,
            lambda: self._footer,
            bool(self._int96_byte_columns),
            self._reader_of_chunks,
        )

    def _open(self, file: Any, int96_unit: str = "us") -> pq.ParquetFile:
        """Open a reader of an open file that uses the prepared metadata."""
        return pq.ParquetFile(
            file,
            metadata=self._physical,
            read_dictionary=self._dictionaries,
            coerce_int96_timestamp_unit=int96_unit,
            pre_buffer=False,
        )

    def typed(self, column: str, data: pa.ChunkedArray, dtype: pa.DataType) -> TypedColumn:
        """Attach the column's type in the file to its data.

        Short decimals were read as integers and stay integers. INT96 times are instants, but Arrow reads them as
        wall-clock times, so they get the table's type here.
        """
        if column in self.int96 and t.is_timestamp(dtype):
            return TypedColumn(dtype, pa.chunked_array([c.view(dtype) for c in data.chunks], dtype))
        stored_type = self.schema.field(column).type
        return TypedColumn(stored_type if pa.types.is_decimal(stored_type) else data.type, data)

    def is_in_engine_form(
        self, column: str, data_type: pa.DataType, dtype: pa.DataType, settings: RebaseSettings
    ) -> bool:
        """Return True if a column certainly needs no conversion. The result is cached, because each row group needs it.

        data_type: the type that a reader returned. dtype: the type of the table.
        """
        key = (column, data_type, dtype, settings)
        known = self._in_engine_form.get(key)
        if known is None:
            known = self._in_engine_form[key] = self._check_engine_form(*key)
        return known

    def _check_engine_form(
        self, column: str, data_type: pa.DataType, dtype: pa.DataType, settings: RebaseSettings
    ) -> bool:
        if self.schema.field(column).type != dtype or column in self.int96 or dtype == t.VARIANT:
            return False
        if self.rebase(column, settings) is not None:
            return False
        return data_type == t.LONG if pa.types.is_decimal(dtype) else data_type in (dtype, _STRING_DICTIONARY)

    def hold(self, group: int, columns: Sequence[str], pages: Sequence[PagedColumn] = ()) -> Release:
        """Prefetch columns of a row group from a remote filesystem; returns a function that releases the bytes.

        columns: the columns that are fetched as a whole. pages: the selected pages of other columns.
        """
        paged = [part for column in pages for part in column.byte_ranges]
        return self._fetched.hold(group, [*self._chunks.byte_ranges(group, columns), *paged])

    def read(self, group: int, columns: Sequence[str]) -> pa.Table:
        """Read all rows of columns of one row group. Raises SourceError if they are corrupt or the file has changed."""
        file = self._input
        try:
            if not file.is_local:
                fetched = self._fetched.fetched(group, self._chunks.byte_ranges(group, columns)).as_file()
                return self._read(group, columns, partial(self._open, fetched))
            table = self._read(group, columns, partial(self._reader_of_thread, file))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._unreadable([group], error) from None
        for chunk in self._chunks.byte_ranges(group, columns):
            count_read(chunk.size)
        file.check_unchanged()
        return table

    def _read(self, group: int, columns: Sequence[str], reader: Callable[[str], pq.ParquetFile]) -> pa.Table:
        """Read and check columns of one row group. reader: opens a reader that returns INT96 times in the given unit."""
        table = reader("us").read_row_group(group, columns=list(columns), use_threads=False)
        for name in self.int96.intersection(columns):
            i = table.column_names.index(name)
            times = self._checked_times(table.column(i), name, group, partial(reader, "s"))
            table = table.set_column(i, name, times)
        for column in set(self._dictionaries).intersection(columns):
            _check_indices(table[column])
        if self._has_exact_counts:
            check_value_counts(table, self._paths, columns, self.metadata.row_group(group))
        rows = self.groups[group][0]
        if table.num_columns and table.num_rows != rows:
            raise ValueError(f"its columns have {table.num_rows} rows instead of {rows}")
        return table

    def _checked_times(
        self, data: pa.ChunkedArray, name: str, group: int, in_seconds: Callable[[], pq.ParquetFile]
    ) -> pa.ChunkedArray:
        """Return the INT96 times of a column. in_seconds: opens a reader that returns them in seconds."""
        if name in self._int96_byte_columns:
            return int96_times(data, name)
        check_int96(in_seconds(), group, name)
        return data

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

    def _reader_of(self, group: int, parts: Sequence[ByteRange]) -> InputFile | FetchedRanges:
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
            arrays = [reader.read_row_group(0, columns=[n], use_threads=False).column(0) for n in names]
            for data in arrays:
                _check_indices(data)
            in_seconds = partial(_reader_of_pages, file, [], "s")
            arrays = [
                self._checked_times(data, name, 0, in_seconds) if name in self.int96 else data
                for name, data in zip(names, arrays, strict=True)
            ]
            if any(len(data) != c.selection.lengths.sum() for data, c in zip(arrays, columns, strict=True)):
                raise ValueError("its pages have other numbers of rows than its page index says")
            return arrays
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._unreadable([group], error) from None

    def column_readers(
        self, groups: Sequence[int], columns: Sequence[str], kernels: ModuleType | None
    ) -> dict[str, ColumnReader]:
        """Read the chunks of those columns that the compiled loops can decode; none without kernels.

        groups: one row group, or several for which ``can_coalesce`` is true.
        """
        if kernels is None:
            return {}
        readable: dict[str, list[FlatChunk]] = {}
        for column in columns:
            chunks = [chunk for group in groups if (chunk := self._flat_chunk(group, column)) is not None]
            if len(chunks) == len(groups):
                readable[column] = chunks
        if not readable:
            return {}
        ranges = [[chunk.byte_range for chunk in chunks] for chunks in readable.values()]
        try:
            if self._input.is_local:
                arrays = self._input.read_arrays(ranges)
            else:
                arrays = self._fetched.read_arrays(groups, ranges)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._unreadable(groups, error) from None
        return {
            column: ColumnReader(chunks, kernels, data)
            for (column, chunks), data in zip(readable.items(), arrays, strict=True)
        }

    def can_coalesce(self, group: int, other: int, columns: Sequence[str]) -> bool:
        """True if ``column_readers`` can read these columns of two row groups together."""
        return all(
            (kind := self._coalescible_kind(group, column)) is not None
            and kind is self._coalescible_kind(other, column)
            for column in columns
        )

    def _coalescible_kind(self, group: int, column: str) -> Hashable:
        """Return the kind of a chunk, one object for equal kinds; None if it must be read alone."""
        key = (group, column)
        if key not in self._coalescible_kinds:
            chunk = self._flat_chunk(group, column)
            kind: Hashable = None
            if chunk is not None and chunk.byte_range.size < _MAX_COALESCED_CHUNK_BYTES:
                kind = self._kinds.setdefault(chunk.kind, chunk.kind)
            self._coalescible_kinds[key] = kind
        return self._coalescible_kinds[key]

    def pages_with_rows(
        self, group: int, column: str, rows: Int64s, kernels: ModuleType | None
    ) -> PagedColumn | None:
        """Select the pages of a column that contain these rows; None if reading the whole column is as fast.

        pyarrow decodes all pages of a chunk, so it should get a file with these pages only. The loops skip the other pages
        anyway. If they can read a chunk of a local file, the result is None up to ``_MIN_PAGED_BYTES_IN_LOOPS``.
        """
        if kernels is not None and self._input.is_local:
            chunk = self._flat_chunk(group, column)
            if chunk is not None and chunk.byte_range.size < _MIN_PAGED_BYTES_IN_LOOPS:
                return None
        return self.pages.with_rows(group, column, rows)

    def may_have_small_dictionary(self, group: int, column: str) -> bool:
        """False if a chunk certainly has no dictionary on which the compiled loops can evaluate conditions."""
        chunk = self._flat_chunk(group, column)
        return chunk is not None and chunk.may_have_small_dictionary

    def loops_are_faster(self, group: int, column: str) -> bool:
        """True if the compiled loops decode all rows of a chunk in less time than pyarrow."""
        chunk = self._flat_chunk(group, column)
        return chunk is not None and chunk.loops_are_faster

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

    def look_up_indices(self, groups: Sequence[int], column: str, values: pa.Array) -> Indices:
        """Find the dictionary indices of chunks that the loops cannot unpack, from the values that pyarrow decodes.

        ``len(values)`` is the index of NULL. Raises SourceError for a corrupt chunk.
        """
        return np.concatenate([self._look_up_in_group(group, column, values) for group in groups])

    def _look_up_in_group(self, group: int, column: str, values: pa.Array) -> Indices:
        # compares bit patterns instead of numbers, so that NaN equals NaN and -0.0 differs from 0.0
        bits = _BIT_TYPES[values.type.bit_width]
        data = self.read(group, [column]).column(0).combine_chunks()
        if pa.types.is_decimal(data.type) and pa.types.is_integer(values.type):
            data = narrow(data)
        indices = pc.index_in(
            data.view(bits), value_set=pa.concat_arrays([values.view(bits), pa.nulls(1, bits)])
        )
        if indices.null_count:
            raise self._unreadable(
                [group], ValueError(f"column {column} has values that its dictionary lacks")
            )
        positions: Indices = indices.to_numpy().astype(np.uint16)
        return positions

    def _unreadable(self, groups: Sequence[int], error: BaseException) -> SourceError:
        cause = self._input.change or error
        numbers = (
            f"row group {groups[0]}" if len(groups) == 1 else f"row groups {', '.join(map(str, groups))}"
        )
        return SourceError(f"cannot read {numbers} of {self.file.path}: {cause}")


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
