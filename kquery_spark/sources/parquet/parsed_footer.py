"""The parsed footer of a Parquet file, and what follows from it for each column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import SourceError
from kquery_spark.sources.base import ColumnRange, DataFile
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
from kquery_spark.sources.parquet.declared_types import declared_fields
from kquery_spark.sources.parquet.flat_chunk import INDEX_ENCODINGS, has_delta_strings
from kquery_spark.sources.parquet.footer import read_footer, storage_metadata
from kquery_spark.sources.parquet.leaves import Leaf, column_leaves, may_exceed_type

_DICTIONARY_BYTES_PER_VALUE = 3.0
_MAY_HAVE_DEPENDENT_PAGES = re.compile(r"parquet-mr(?! version (1\.([89]|\d\d)|[2-9]))")
# Parquet's Java library before release 1.10 compares the bytes of decimals as signed bytes (PARQUET-686).
_HAS_UNORDERED_DECIMALS = re.compile(r"parquet-mr(?! version (1\.\d\d|[2-9]))")
# Measured: 17 KB for a file of three columns, 944 KB for one whose footer of 116 KB describes 1,000 chunks.
_BYTES_OF_A_FILE, _FOOTER_EXPANSION = 12 << 10, 8


class ParsedFooter:
    """The schema, the row groups and the statistics of a file. Facts that require all row groups are cached by column.

    is_summary: whether the column chunks are in other files, so that only the schema can be used.
    """

    def __init__(self, file: DataFile, *, is_summary: bool = False) -> None:
        self.file = file
        self._is_summary = is_summary
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
        self._old_times: dict[str, dict[int, TimeLeaf]] = {}
        self._exceeding: dict[str, bool] = {}
        self._dictionaries = self._low_cardinality()

    def _reader_of_footer(self) -> pq.ParquetFile:
        """A reader with the checked footer. Without a plain footer, pyarrow opens the file, to raise its own error."""
        file, footer = self._input, self._footer
        try:
            if footer is None:
                file.open_reader("Parquet", lambda: pq.ParquetFile(file.native))
                raise ValueError("it has no plain footer")
            size = None if self._is_summary else file.size()
            return file.open_reader("Parquet", lambda: checked_reader(footer, size), checked=True)
        except ValueError as error:
            raise SourceError(f"cannot read {self.file.path} as Parquet: {error}") from None

    @property
    def nbytes(self) -> int:
        """Estimated memory of the parsed footer and of everything that is derived from it, for the cache."""
        return _BYTES_OF_A_FILE + _FOOTER_EXPANSION * int(self.metadata.serialized_size)

    @property
    def by_parquet_java(self) -> bool:
        """True if Parquet's Java library wrote the file. Spark never converts INT96 times of such files."""
        return str(self.metadata.created_by).startswith("parquet-mr")

    @cached_property
    def _int96_byte_columns(self) -> set[str]:
        """The flat columns with INT96 times that may have negative nanoseconds, which pyarrow misreads."""
        return set() if self.by_parquet_java else self.int96.intersection(self._flat)

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
    def columns_with_dependent_pages(self) -> set[str]:
        """Columns with pages whose first string may need a prefix of the last string of the page before (PARQUET-246).

        Parquet's Java library wrote such pages before release 1.8. Files that do not name their writer may have them, too.
        """
        if not _MAY_HAVE_DEPENDENT_PAGES.match(str(self.metadata.created_by or "parquet-mr")):
            return set()
        groups = [self.metadata.row_group(g) for g in range(self.metadata.num_row_groups)]
        return {
            leaf.path.split(".", 1)[0]
            for i, leaf in enumerate(self._leaves)
            if any("DELTA_BYTE_ARRAY" in group.column(i).encodings for group in groups)
        }

    @cached_property
    def ambiguous(self) -> set[str]:
        """Lower-case names that several columns share."""
        folded = Counter(name.lower() for name in self.schema.names)
        return {name for name, count in folded.items() if count > 1}

    @cached_property
    def _physical(self) -> Any:
        """The metadata that readers get, in which ``storage_metadata`` may have replaced types."""
        short = any(pa.types.is_decimal(field.type) and field.type.precision <= 18 for field in self.schema)
        if not short and not self._int96_byte_columns:
            return self.metadata
        return (
            self._footer and storage_metadata(self._footer, int96=bool(self._int96_byte_columns))
        ) or self.metadata

    @cached_property
    def _stored_schema(self) -> pa.Schema:
        """The Arrow schema that readers return: short decimals are integers, and ``_int96_byte_columns`` have 12 bytes."""
        schema: pa.Schema = self._physical.schema.to_arrow_schema()
        return schema

    @cached_property
    def _footer(self) -> bytes | None:
        return read_footer(self._input)

    @property
    def _input(self) -> InputFile:
        return shared_input(self.file)

    def has_int96(self, column: str) -> bool:
        """True if the column or one of its leaves has INT96 times."""
        return any(path == column or path.startswith(f"{column}.") for path in self.int96)

    def rebase(self, column: str, settings: RebaseSettings) -> ColumnRebase | None:
        """How old dates and times of a column are rebased; None if the column certainly needs no rebase."""
        datetime, int96 = settings.modes(self._key_values)
        if datetime == int96 == CORRECTED or column not in self._times:
            return None
        modes = {DATE: datetime, TIMESTAMP: datetime, INT96: int96}
        if all(modes[leaf.kind] == CORRECTED for leaf in self._old_leaves(column).values()):
            return None
        name = settings.zone_of(self._key_values)
        zone = next((zone for zone in settings.zones if zone.name == name), None)
        return ColumnRebase(self._old_leaves(column), modes, zone)

    def zone_of(self, settings: RebaseSettings) -> str | None:
        """The time zone by which old times are rebased; None if it is unknown."""
        return settings.zone_of(self._key_values)

    @cached_property
    def declared(self) -> list[Mapping[str, Any]] | None:
        """The JSON of the columns in the schema that Spark wrote into the footer; None if it has no such schema."""
        return declared_fields(self._key_values)

    @property
    def leaves(self) -> list[Any]:
        """pyarrow's ``ColumnSchema`` of each leaf."""
        return self._leaves

    @cached_property
    def _times(self) -> dict[str, dict[int, TimeLeaf]]:
        return time_leaves(self.schema, self._leaves)

    def _old_leaves(self, column: str) -> dict[int, TimeLeaf]:
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
                    _range(self.metadata.row_group(g).column(leaf_index), self._is_unordered(leaf_index))
                    for g in range(self.metadata.num_row_groups)
                ]
            )
        return self._ranges[column]

    def _is_unordered(self, leaf_index: int) -> bool:
        """True if the writer may have computed the minimum and maximum of a leaf by a wrong order of its values.

        This concerns decimals. Spark ignores their statistics in such files, but Arrow returns them. A file that does not
        name its writer may be one of these.
        """
        leaf = self._leaves[leaf_index]
        return (
            leaf.logical_type.type == "DECIMAL"
            and leaf.physical_type in ("FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY")
            and _HAS_UNORDERED_DECIMALS.match(str(self.metadata.created_by or "parquet-mr")) is not None
        )

    def _low_cardinality(self) -> list[str]:
        """String columns to read as dictionaries: dictionary-encoded, and below 3 bytes per value in the first row group.

        Columns with delta-encoded pages are left out, because pyarrow cannot read these pages as dictionaries.
        """
        columns = []
        for field in self.schema:
            leaf_index = self._flat.get(field.name)
            is_string = pa.types.is_string(field.type) or pa.types.is_string_view(field.type)
            if leaf_index is None or not is_string or self.metadata.num_row_groups == 0:
                continue
            chunk = self.metadata.row_group(0).column(leaf_index)
            encoded = not INDEX_ENCODINGS.isdisjoint(chunk.encodings)
            if (
                encoded
                and chunk.total_uncompressed_size < _DICTIONARY_BYTES_PER_VALUE * max(chunk.num_values, 1)
                and not has_delta_strings(self.metadata, leaf_index)
            ):
                columns.append(field.name)
        return columns


def _range(chunk: Any, is_unordered: bool) -> ColumnRange | None:
    """Return the statistics of a chunk. is_unordered: True if its minimum and maximum may not be those of the values."""
    statistics = chunk.statistics
    if statistics is None:
        return None
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max or (is_unordered and statistics.min_raw != statistics.max_raw):
        return ColumnRange(None, None, nulls)
    try:
        return ColumnRange(statistics.min, statistics.max, nulls)
    except (OverflowError, ValueError, NotImplementedError):
        # dates outside Python's range, strings that are not UTF-8, or decimals, which old releases of Arrow do not read
        return ColumnRange(None, None, nulls)
