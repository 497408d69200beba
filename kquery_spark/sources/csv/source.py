"""Scans CSV files: splits are byte ranges that begin at line ends, and only the requested columns are converted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.errors import ExecutionError, PlanError, SourceError, Unsupported
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.sources.base import DataFile, Source, Split
from kquery_spark.sources.csv.blocks import MAX_WHOLE_BYTES, TextColumns, count_rows, text_columns
from kquery_spark.sources.csv.infer import ColumnType, safe_names
from kquery_spark.sources.csv.options import CsvOptions, csv_options
from kquery_spark.sources.csv.tokens import LineTokenizer
from kquery_spark.sources.csv.values import check_type, converted
from kquery_spark.sources.files import naming_file
from kquery_spark.sources.lines import LineSource
from kquery_spark.sources.listing import partitioned_files
from kquery_spark.sources.text import check_codec, first_lines, line_blocks
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import from_arrow

_BLANKS = "".join(map(chr, range(33)))
# Without the loops, 8 MB take 80 instead of 20 ms, so loading them pays after about 32 MB (see ``CompiledLoops.kernels``).
_BYTES_PER_CHUNK = 320 << 10


@dataclass(frozen=True)
class CsvSource(LineSource):
    """CSV files with one table schema, columns by position; partition columns come last, as in Spark."""

    options: CsvOptions
    compiled: bool = True

    @property
    @override
    def whole_files(self) -> bool:
        return bool(self.options.multi_line)

    @cached_property
    def _data(self) -> dict[str, int]:
        """The columns that the files contain, with their positions in a line."""
        names = [n for n in self.table_schema.names if n not in self.partition_columns]
        return {name: i for i, name in enumerate(names)}

    @override
    def check_files(self, columns: Sequence[str]) -> None:
        """Check the headers if they must conform to the schema."""
        if self.options.header and not self.options.enforce_schema:
            for file in self.files:
                self._without_header(first_lines(file), file)

    @override
    def without_kernels(self) -> Source:
        return replace(self, compiled=False)

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        """One batch per 8 MB of text."""
        file = self.files[split.file]
        data_columns = [c for c in columns if c not in self.partition_columns]
        start, length = split.pieces
        header = self.options.header and start == 0
        for block in line_blocks(file, start, length, whole=self.options.multi_line):
            if header:
                block, header = self._without_header(block, file), False
            try:
                rows, arrays = self._read_block(block, data_columns)
            except SourceError as error:
                raise SourceError(f"{file.path}: {error}") from None
            yield self.batch(file, columns, data_columns, arrays, rows)

    def _read_block(self, block: bytes, data_columns: list[str]) -> tuple[int, list[pa.Array]]:
        if not data_columns:
            return self._count(block), []
        types = [self.table_schema.field(c).type for c in data_columns]
        types_by_index = {
            self._data[c]: self._tokenized_type(dtype) for c, dtype in zip(data_columns, types, strict=True)
        }
        width, kernel_module = (
            _usual_width(block, self.options),
            FILE_LOOPS.kernels(1 + len(block) // _BYTES_PER_CHUNK) if self.compiled else None,
        )
        text = text_columns(block, self.options, width, types_by_index, len(self._data), kernel_module)
        values = [converted(c, dtype, self.options) for c, dtype in zip(text.columns, types, strict=True)]
        rows = text.num_rows
        if self.options.mode != "PERMISSIVE":
            rows, values = self._without_malformed(text, values)
        return rows, [from_arrow(dtype, v).data for v, dtype in zip(values, types, strict=True)]

    def _without_malformed(self, text: TextColumns, values: list[pa.Array]) -> tuple[int, list[pa.Array]]:
        """Return the number and the values of the well-formed rows; in mode FAILFAST, raise if there are others."""
        good = self._well_formed(text, values)
        if good.all():
            return text.num_rows, values
        if self.options.mode == "FAILFAST":
            raise ExecutionError(
                "MALFORMED_RECORD_IN_PARSING",
                "Malformed records are detected in record parsing. Parse Mode: FAILFAST.",
            )
        return int(good.sum()), [v.filter(pa.array(good)) for v in values]

    def _tokenized_type(self, dtype: pa.DataType) -> pa.DataType:
        """Return the type in which a column is split off, before it is converted to its own type.

        That is string, or the column's own type for floats: Arrow parses floats exactly like Java, so it may do so right
        away unless malformed values must be detected.
        """
        at_once = self.options.mode == "PERMISSIVE" and not self.options.special_numbers_look_finite
        return dtype if at_once and t.is_fractional(dtype) else t.STRING

    def _count(self, block: bytes) -> int:
        if self.options.multi_line:
            text = text_columns(
                block, self.options, _usual_width(block, self.options), {0: t.STRING}, len(self._data)
            )
            return text.num_rows
        return count_rows(block, self.options)

    def _well_formed(self, text: TextColumns, values: list[pa.Array]) -> Any:
        good = np.ones(text.num_rows, np.bool_)
        for before, after in zip(text.columns, values, strict=True):
            if after.null_count > before.null_count:
                good &= np.asarray(after.is_valid()) | np.asarray(before.is_null())
        # With fewer columns than the table has, Spark's tokenizer does not see that a line is short or long.
        if text.wrong_width is not None and len(values) == len(self._data):
            good &= ~text.wrong_width
        return good

    def _without_header(self, block: bytes, file: DataFile) -> bytes:
        line, rest = _header_line(block, self.options)
        if line is not None and not self.options.enforce_schema:
            names = LineTokenizer(self.options).tokens(line)
            expected = list(self._data)
            if not self.options.case_sensitive:
                names, expected = [n.lower() for n in names], [n.lower() for n in expected]
            if names != expected:
                raise SourceError(f"{file.path}: the CSV header does not conform to the schema: {line}")
        return rest


def _header_line(block: bytes, options: CsvOptions) -> tuple[str | None, bytes]:
    """Return the first line that is neither blank nor a comment, and the bytes after it.

    With multiLine, a line of blanks is a record for Spark's tokenizer, so only empty lines before the header are skipped.
    """
    start = 0
    while start < len(block):
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        text = block[start:end].decode("utf-8", "replace")
        start = end + 1
        content = text if options.multi_line else text.strip(_BLANKS)
        if content and not (options.comment and content.startswith(options.comment)):
            return text, block[start:]
    return None, b""


def _usual_width(block: bytes, options: CsvOptions) -> int:
    """Return the most frequent number of values among the first lines. A wrong guess costs time, but loses no rows."""
    tokenizer = LineTokenizer(options)
    head = block[:65536].split(b"\n", 6)[:5]
    widths = Counter(
        len(tokenizer.tokens(text))
        for line in head
        if (text := line.decode("utf-8", "replace")).strip(_BLANKS)
    )
    return widths.most_common(1)[0][0] if widths else 1


def csv_source(
    paths: Sequence[str],
    schema: pa.Schema | None = None,
    tz: str = "UTC",
    names: str = "_c{0}",
    case_sensitive: bool = False,
    **options: object,
) -> CsvSource:
    """Create the source of CSV files, directories or globs.

    schema: the columns of the files by position; without it names come from the header (or ``names``, with
    {0} for the index from 0 and {1} from 1) and types are string, or inferred with ``inferSchema=True``.
    options: Spark's (``header``, ``sep``, ``quote``, ``escape``, ``nullValue``, ``mode``, ``multiLine`` ...).
    """
    parsed = replace(csv_options(options, tz), names=names, case_sensitive=case_sensitive)
    files, fields, _ = partitioned_files(paths, tz)
    check_sizes(files, parsed)
    if schema is None:
        with naming_file(", ".join(map(str, paths))):
            schema = _described(files, parsed, tz)
    partition_names = {f.name for f in fields}
    columns = [pa.field(f.name, f.type) for f in schema if f.name not in partition_names]
    if len(columns) < len(schema) and schema.names[-len(partition_names) :] != [f.name for f in fields]:
        raise Unsupported("a CSV column named like a partition column is supported at the end only")
    return _table(files, pa.schema(columns + fields), tuple(f.name for f in fields), parsed)


def _table(
    files: Sequence[DataFile], schema: pa.Schema, partition_columns: tuple[str, ...], options: CsvOptions
) -> CsvSource:
    for file in files:
        check_codec(file.path)
    columns = [f for f in schema if f.name not in partition_columns]
    if len({c.name for c in columns}) < len(columns):
        raise PlanError(f"the CSV schema has a column twice: {', '.join(c.name for c in columns)}")
    for column in columns:
        check_type(column.name, column.type)
        if column.name == "_corrupt_record":
            raise Unsupported("the column _corrupt_record is not supported")
    return CsvSource(tuple(files), schema, options, partition_columns)


def check_sizes(files: Sequence[DataFile], options: CsvOptions) -> None:
    """Raise Unsupported for files that are too large to be read as a whole, which multiLine requires."""
    if not options.multi_line:
        return
    for file in files:
        if file.size > MAX_WHOLE_BYTES:
            raise Unsupported(
                f"{file.path} has {file.size:,} bytes, and CSV files with multiLine are supported up to "
                f"{MAX_WHOLE_BYTES:,} bytes"
            )


def _described(files: Sequence[DataFile], options: CsvOptions, tz: str) -> pa.Schema:
    """Infer the schema like Spark: names from the header of the largest file, types from all values of all files."""
    sized = [f for f in files if f.size]
    if not sized:
        return pa.schema([])
    line, names = _columns_of(max(sized, key=lambda f: f.size), options)
    if options.multi_line:
        _check_same_columns(sized, names, options)
    if not options.infer_schema:
        return pa.schema([pa.field(name, t.STRING) for name in names])
    if options.has_patterns:
        raise Unsupported(
            "CSV with dateFormat or timestampFormat and inferSchema is supported with a schema only"
        )
    column_types = [ColumnType(name) for name in names]
    for file in sized:
        _add_values(column_types, file, line.encode(), options)
    return pa.schema([pa.field(c.name, c.result(tz)) for c in column_types])


def _check_same_columns(files: Sequence[DataFile], names: list[str], options: CsvOptions) -> None:
    """Raise Unsupported for files with different columns: with multiLine, Spark uses those of the file it opens first."""
    if any(_columns_of(f, options)[1] != names for f in files):
        raise Unsupported("files of different columns with multiLine are supported with a schema only")


def _add_values(
    column_types: Sequence[ColumnType], file: DataFile, header: bytes, options: CsvOptions
) -> None:
    """Widen the columns' types to include all values of a file."""
    types_by_index: dict[int, pa.DataType] = dict.fromkeys(range(len(column_types)), t.STRING)
    for block in line_blocks(file, 0, file.size, whole=options.multi_line):
        rest = _without_line(block, header) if options.header else block
        text = text_columns(rest, options, _usual_width(rest, options), types_by_index, len(column_types))
        for column, values in zip(column_types, text.columns, strict=True):
            column.add(values, options)


def _columns_of(file: DataFile, options: CsvOptions) -> tuple[str, list[str]]:
    """The first line of a file, and the column names that follow from it."""
    line, _ = _header_line(first_lines(file), options)
    if line is None:
        raise SourceError(f"{file.path} has no line to take column names from")
    return line, safe_names(LineTokenizer(options).tokens(line), options)


def _without_line(block: bytes, line: bytes) -> bytes:
    """Remove every line that equals the header; Spark ignores all of these in schema inference."""
    if line not in block:
        return block
    return b"\n".join(x for x in block.split(b"\n") if x != line)
