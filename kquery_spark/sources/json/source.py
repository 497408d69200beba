"""JSON files: byte ranges are the splits, cut at line ends; only the columns asked for are converted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError, SourceError, Unsupported
from kquery_spark.sources.base import ColumnRange, DataFile, Source, Split
from kquery_spark.sources.files import constant, partition_range, partitioned_files
from kquery_spark.sources.json.blocks import BadRecord, LineError, read_rows
from kquery_spark.sources.json.infer import block_type, columns_of, merged
from kquery_spark.sources.json.options import JsonOptions, json_options
from kquery_spark.sources.json.values import check_type
from kquery_spark.sources.text import check_codec, first_lines, is_compressed, line_blocks
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import from_arrow

_SPLIT_BYTES = 32 << 20


@dataclass(frozen=True)
class JsonSource(Source):
    """Files of JSON lines with one table schema, columns by name; partition columns come last, as in Spark."""

    divisible: ClassVar[bool] = False
    columnar: ClassVar[bool] = False

    files: tuple[DataFile, ...]
    table_schema: pa.Schema
    options: JsonOptions
    partition_columns: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """See Source."""
        return self.table_schema

    @cached_property
    def _row_bytes(self) -> float:
        """Bytes of a line, from the start of the largest file."""
        if not self.files:
            return 1.0
        text = first_lines(max(self.files, key=lambda f: f.size))
        return max(1.0, len(text) / max(1, text.count(b"\n")))

    def splits(self) -> list[Split]:
        """Ranges of 32 MB; whole files where lines cannot be found from the middle."""
        found = []
        for index, file in enumerate(self.files):
            step = max(file.size, 1) if is_compressed(file.path) else _SPLIT_BYTES
            for start in range(0, file.size, step):
                length = min(step, file.size - start)
                found.append(Split(index, (start, length), int(length / self._row_bytes) + 1, length))
        return found

    def column_bytes(self, columns: Sequence[str]) -> int:
        """See Source; all of the text has to be parsed, whichever columns are wanted."""
        return sum(f.size for f in self.files)

    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        """See Source; known for partition columns only."""
        return partition_range(self.files[split.file], self.partition_columns, column, split.rows)

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        """One batch per 8 MB of text."""
        file = self.files[split.file]
        schema = pa.schema([self.table_schema.field(c) for c in columns])
        wanted = pa.schema([f for f in schema if f.name not in self.partition_columns])
        start, length = split.pieces
        for line, block in _numbered(file, start, length):
            try:
                rows, arrays = self._read_block(block, wanted)
            except BadRecord as error:
                where = _place(file, start, line + error.line)
                raise ExecutionError(
                    "MALFORMED_RECORD_IN_PARSING", f"{error} {where}. Parse Mode: FAILFAST."
                ) from None
            except LineError as error:
                raise SourceError(f"{_place(file, start, line + error.line)}: {error}") from None
            found = dict(zip(wanted.names, arrays, strict=True))
            yield Batch(
                schema,
                tuple(
                    found[f.name]
                    if f.name in found
                    else constant(file.partition[self.partition_columns.index(f.name)], f.type, rows)
                    for f in schema
                ),
                rows,
            )

    def _read_block(self, block: bytes, wanted: pa.Schema) -> tuple[int, list[pa.Array]]:
        rows = read_rows(block, wanted, self.options)
        arrays, count = list(rows.columns), rows.num_rows
        if self.options.mode == "DROPMALFORMED" and not rows.good.all():
            arrays = [a.filter(pa.array(rows.good)) for a in arrays]
            count = int(np.count_nonzero(rows.good))
        return count, [
            from_arrow(f.type, a if a.type == f.type else a.cast(f.type)).data
            for f, a in zip(wanted, arrays, strict=True)
        ]


def _numbered(file: DataFile, start: int, length: int) -> Iterator[tuple[int, bytes]]:
    """Blocks of lines with the number of their first line in the split."""
    line = 0
    for block in line_blocks(file, start, length):
        yield line, block
        line += block.count(b"\n")


def _place(file: DataFile, start: int, line: int) -> str:
    after = f" after byte {start}" if start else ""
    return f"{file.path}, line {line + 1}{after}"


def json_source(
    paths: Sequence[str],
    schema: pa.Schema | None = None,
    tz: str = "UTC",
    case_sensitive: bool = False,
    **options: object,
) -> JsonSource:
    """Describe files of JSON lines, directories or globs.

    schema: the columns by name; without it they are inferred from all lines, as Spark infers them.
    options: Spark's (``mode``, ``timeZone``; most others with their defaults only).
    """
    parsed = replace(json_options(options, tz), case_sensitive=case_sensitive)
    files, fields = partitioned_files(paths, tz, infer=True)
    for file in files:
        check_codec(file.path)
    if schema is None:
        schema = _inferred(files, parsed)
    taken = {f.name for f in fields}
    columns = [pa.field(f.name, f.type) for f in schema if f.name not in taken]
    if len(columns) < len(schema):
        raise Unsupported("A JSON column named like a partition column is not supported.")
    check_columns(columns)
    return JsonSource(tuple(files), pa.schema(columns + fields), parsed, tuple(f.name for f in fields))


def check_columns(columns: Sequence[pa.Field], corrupt: str = "_corrupt_record") -> None:
    """Raise for columns that the engine does not read from JSON; ``corrupt``: the column of malformed lines."""
    if len({c.name for c in columns}) < len(columns):
        raise PlanError(f"the JSON schema has a column twice: {', '.join(c.name for c in columns)}")
    for column in columns:
        check_type(column.name, column.type)
        if column.name == corrupt:
            raise Unsupported(f"The column {corrupt} of malformed lines is not supported.")


def _inferred(files: Sequence[DataFile], options: JsonOptions) -> pa.Schema:
    found = pa.struct([])
    for file in files:
        for line, block in _numbered(file, 0, file.size):
            try:
                found = merged(found, block_type(block, options))
            except LineError as error:
                raise Unsupported(f"{_place(file, 0, line + error.line)}: {error}.") from None
            except SourceError as error:
                raise SourceError(f"{file.path}: {error}") from None
    return columns_of(found, options)
