"""What the sources of text files share: splits cut at line ends, and the columns of partitioned directories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.sources.base import ColumnRange, DataFile, Source, Split
from kquery_spark.sources.files import constant, partition_range
from kquery_spark.sources.text import first_lines, is_compressed
from kquery_spark.types.batch import Batch

_SPLIT_BYTES = 32 << 20


@dataclass(frozen=True)
class LineSource(Source):
    """Text files with one table schema; partition columns come last, as in Spark. A format adds ``read``."""

    divisible: ClassVar[bool] = False
    columnar: ClassVar[bool] = False

    files: tuple[DataFile, ...]
    table_schema: pa.Schema
    options: Any
    partition_columns: tuple[str, ...] = ()

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.table_schema

    @property
    def whole_files(self) -> bool:
        """Whether line ends are only known when a file is read from its start."""
        return False

    @cached_property
    def _row_bytes(self) -> float:
        """Bytes of a line, from the start of the largest file."""
        if not self.files:
            return 1.0
        text = first_lines(max(self.files, key=lambda f: f.size))
        return max(1.0, len(text) / max(1, text.count(b"\n")))

    def splits(self) -> list[Split]:
        """Ranges of 32 MB; whole files where a line's start is unknown in the middle."""
        ranges = []
        for index, file in enumerate(self.files):
            whole = self.whole_files or is_compressed(file.path)
            step = max(file.size, 1) if whole else _SPLIT_BYTES
            for start in range(0, file.size, step):
                length = min(step, file.size - start)
                ranges.append(Split(index, (start, length), int(length / self._row_bytes) + 1, length))
        return ranges

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        """All of the text is split into lines, whichever columns are read."""
        return sum(f.size for f in self.files)

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        """Known for partition columns only."""
        return partition_range(self.files[split.file], self.partition_columns, column, split.rows)

    def batch(
        self,
        file: DataFile,
        columns: Sequence[str],
        names: Sequence[str],
        arrays: Sequence[pa.Array],
        rows: int,
    ) -> Batch:
        """The requested columns, from the arrays called ``names`` and the file's partition values."""
        by_name = dict(zip(names, arrays, strict=True))
        schema = pa.schema([self.table_schema.field(c) for c in columns])
        for field in schema:
            if field.name not in by_name:
                value = file.partition[self.partition_columns.index(field.name)]
                by_name[field.name] = constant(value, field.type, rows)
        return Batch(schema, tuple(by_name[c] for c in columns), rows)
