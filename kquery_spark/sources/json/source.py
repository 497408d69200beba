"""Scans JSON files: splits are byte ranges that begin at line ends, and only the requested columns are converted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import ExecutionError, PlanError, SourceError, Unsupported
from kquery_spark.sources.base import DataFile, Split
from kquery_spark.sources.files import naming_file
from kquery_spark.sources.json.blocks import BadRecord, LineError, read_rows
from kquery_spark.sources.json.infer import block_type, columns_of, has_duplicate_fields, merged
from kquery_spark.sources.json.options import JsonOptions, json_options
from kquery_spark.sources.json.values import check_type
from kquery_spark.sources.lines import LineSource
from kquery_spark.sources.listing import partitioned_files
from kquery_spark.sources.text import check_codec, line_blocks
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import from_arrow


@dataclass(frozen=True)
class JsonSource(LineSource):
    """Files of JSON lines with one table schema, columns by name; partition columns come last, as in Spark."""

    options: JsonOptions

    @override
    def under_filters(self, null_filters: bool) -> JsonSource:
        """Record that Spark would push filters into its scan, and so test them before it has parsed a whole line."""
        return replace(self, options=replace(self.options, filters=True, null_filters=null_filters))

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        """One batch per 8 MB of text."""
        file = self.files[split.file]
        data_schema = pa.schema(
            [self.table_schema.field(c) for c in columns if c not in self.partition_columns]
        )
        start, length = split.pieces
        for line, block in _numbered(file, start, length):
            try:
                rows, arrays = self._read_block(block, data_schema)
            except BadRecord as error:
                where = _location(file, start, line + error.line)
                raise ExecutionError(
                    "MALFORMED_RECORD_IN_PARSING", f"{error} {where}. Parse Mode: FAILFAST."
                ) from None
            except LineError as error:
                raise SourceError(f"{_location(file, start, line + error.line)}: {error}") from None
            yield self.batch(file, columns, data_schema.names, arrays, rows)

    def _read_block(self, block: bytes, data_schema: pa.Schema) -> tuple[int, list[pa.Array]]:
        rows = read_rows(block, data_schema, self.options)
        arrays, count = list(rows.columns), rows.num_rows
        if self.options.mode == "DROPMALFORMED" and not rows.good.all():
            arrays = [a.filter(pa.array(rows.good)) for a in arrays]
            count = int(np.count_nonzero(rows.good))
        return count, [
            from_arrow(f.type, a if a.type == f.type else a.cast(f.type)).data
            for f, a in zip(data_schema, arrays, strict=True)
        ]


def _numbered(file: DataFile, start: int, length: int) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of lines with the number of their first line within the split."""
    line = 0
    for block in line_blocks(file, start, length):
        yield line, block
        line += block.count(b"\n")


def _location(file: DataFile, start: int, line: int) -> str:
    after = f" after byte {start}" if start else ""
    return f"{file.path}, line {line + 1}{after}"


def json_source(
    paths: Sequence[str],
    schema: pa.Schema | None = None,
    tz: str = "UTC",
    case_sensitive: bool = False,
    **options: object,
) -> JsonSource:
    """Create the source of files of JSON lines, directories or globs.

    schema: the columns by name; without it they are inferred from all lines, as Spark infers them.
    options: Spark's (``mode``, ``timeZone``; most others with their defaults only).
    """
    parsed = replace(json_options(options, tz), case_sensitive=case_sensitive)
    files, fields, _ = partitioned_files(paths, tz)
    for file in files:
        check_codec(file.path)
    if schema is None:
        record_type = _infer_record_type(files, parsed)
        with naming_file(", ".join(map(str, paths))):
            schema = columns_of(record_type, parsed)
    elif has_duplicate_fields(pa.struct(list(schema)), case_sensitive):
        raise PlanError("[COLUMN_ALREADY_EXISTS] the JSON schema has a column or a field twice")
    partition_names = {f.name for f in fields}
    columns = [pa.field(f.name, f.type) for f in schema if f.name not in partition_names]
    if len(columns) < len(schema):
        raise Unsupported("a JSON column named like a partition column is not supported")
    check_columns(columns)
    return JsonSource(tuple(files), pa.schema(columns + fields), parsed, tuple(f.name for f in fields))


def check_columns(columns: Sequence[pa.Field], corrupt: str = "_corrupt_record") -> None:
    """Raise for columns that the engine does not read from JSON. corrupt: the name of the column of malformed lines."""
    if len({c.name for c in columns}) < len(columns):
        raise PlanError(f"the JSON schema has a column twice: {', '.join(c.name for c in columns)}")
    for column in columns:
        check_type(column.name, column.type)
        if column.name == corrupt:
            raise Unsupported(f"the column {corrupt} of malformed lines is not supported")


def _infer_record_type(files: Sequence[DataFile], options: JsonOptions) -> pa.DataType:
    """Infer the struct type of the records in all files."""
    record_type = pa.struct([])
    for file in files:
        for line, block in _numbered(file, 0, file.size):
            try:
                record_type = merged(record_type, block_type(block, options))
            except LineError as error:
                raise Unsupported(f"{_location(file, 0, line + error.line)}: {error}") from None
            except SourceError as error:
                raise SourceError(f"{file.path}: {error}") from None
    return record_type
