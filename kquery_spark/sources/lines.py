"""Base class of CSV and JSON sources: byte ranges that begin at line ends as splits, and partition columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.base import ColumnRange, DataFile, Source, Split
from kquery_spark.sources.partitions import constant, partition_range
from kquery_spark.sources.text import first_lines, is_compressed
from kquery_spark.types.batch import Batch

_SPLIT_BYTES = 32 << 20
_SAMPLE_BYTES = 64 << 10  # of each part that is parsed for a sample
_SAMPLE_FILE_BYTES = 8 << 20  # a larger file that must be read as a whole is not sampled


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
        """True if files must be read from their start to find line ends."""
        return False

    @cached_property
    def _row_bytes(self) -> float:
        """Average bytes of a line at the start of the largest file."""
        if not self.files:
            return 1.0
        head = first_lines(max(self.files, key=lambda f: f.size))
        return max(1.0, len(head) / max(1, head.count(b"\n")))

    def splits(self) -> list[Split]:
        """Return byte ranges of 32 MB, or whole files if lines cannot be found in the middle of a file."""
        ranges = []
        for index, file in enumerate(self.files):
            whole = self.whole_files or is_compressed(file.path)
            step = max(file.size, 1) if whole else _SPLIT_BYTES
            for start in range(0, file.size, step):
                length = min(step, file.size - start)
                ranges.append(Split(index, (start, length), int(length / self._row_bytes) + 1, length))
        return ranges

    @override
    def sample_parts(self, split: Split, count: int) -> list[Split]:
        """Return short byte ranges, spread over the split because lines are often in the order of a key, such as the time.

        With ``whole_files``, a file is one batch, so it is sampled only if it is small and not compressed. Otherwise a
        compressed file is one part, and only its first batch is read.
        """
        start, length = split.pieces
        compressed = is_compressed(self.files[split.file].path)
        if self.whole_files:
            return [] if compressed or length > _SAMPLE_FILE_BYTES else [split]
        if compressed or length <= count * _SAMPLE_BYTES:
            return [split]
        return [
            replace(
                split,
                pieces=(start + length * (2 * i + 1) // (2 * count), _SAMPLE_BYTES),
                rows=split.rows * _SAMPLE_BYTES // length,
                nbytes=_SAMPLE_BYTES,
            )
            for i in range(count)
        ]

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        """Return the size of the files, because all bytes are read, whatever the columns."""
        return sum(f.size for f in self.files)

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        """Return the value of a partition column; other columns have no statistics."""
        return partition_range(self.files[split.file], self.partition_columns, column, split.rows)

    def batch(
        self,
        file: DataFile,
        columns: Sequence[str],
        names: Sequence[str],
        arrays: Sequence[pa.Array],
        rows: int,
    ) -> Batch:
        """Build a batch of the requested columns from ``arrays``, whose columns are ``names``, and from partition values."""
        by_name = dict(zip(names, arrays, strict=True))
        schema = pa.schema([self.table_schema.field(c) for c in columns])
        for field in schema:
            if field.name not in by_name:
                value = file.partition[self.partition_columns.index(field.name)]
                by_name[field.name] = constant(value, field.type, rows)
        return Batch(schema, tuple(by_name[c] for c in columns), rows)
