"""Arrow tables in memory; can be scanned any number of times."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.sources.base import Source, Split
from kquery_spark.types.arrow_types import spark_column_type
from kquery_spark.types.batch import Batch
from kquery_spark.types.names import DAY_TIME

_BATCH_ROWS = 128 * 1024


@dataclass(frozen=True)
class MemorySource(Source):
    """An Arrow table in this process.

    token: its identity; sources with the same token are equal. origins: the lineage of each column, if the table is a cached
    query result.
    """

    columnar: ClassVar[bool] = True

    table_schema: pa.Schema
    token: str
    table: Any = field(compare=False, repr=False)
    origins: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.table_schema

    @property
    @override
    def holds_rows(self) -> bool:
        return True

    def splits(self) -> list[Split]:
        """Slices of 128k rows."""
        rows = self.table.num_rows
        per_row = self.table.nbytes / max(rows, 1)
        return [
            Split(
                0,
                (start, min(_BATCH_ROWS, rows - start)),
                min(_BATCH_ROWS, rows - start),
                int(per_row * _BATCH_ROWS),
            )
            for start in range(0, rows, _BATCH_ROWS)
        ]

    @override
    def row_count(self) -> int | None:
        return int(self.table.num_rows)

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        return sum(self.table.column(c).nbytes for c in columns)

    @override
    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        start, length = split.pieces
        schema = pa.schema([self.table_schema.field(c) for c in columns])
        part = self.table.select(list(columns)).slice(start, length)
        if not columns:
            yield Batch(schema, (), length)
            return
        for batch in part.to_batches():
            yield Batch.from_arrow(batch, schema)


def memory_column_type(field: pa.Field, tz: str = "UTC") -> pa.DataType:
    """Return the Spark type of a column of an Arrow table; raises Unsupported if it has none."""
    return DAY_TIME if pa.types.is_duration(field.type) else spark_column_type(field, tz)


def memory_source(table: pa.Table, tz: str = "UTC") -> MemorySource:
    """Build the source of an Arrow table; views, large and unsigned types become the types that Spark would use."""
    schema = pa.schema([pa.field(f.name, memory_column_type(f, tz), f.nullable) for f in table.schema])
    return MemorySource(schema, uuid.uuid4().hex, table)


def local_source(table: pa.Table) -> MemorySource:
    """Build the source of a small table with Spark's types; tables with the same rows have equal sources."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return MemorySource(table.schema, hashlib.sha256(sink.getvalue()).hexdigest(), table)


def one_row_source() -> MemorySource:
    """The source of a single row, for SELECT without FROM; always the same source, so that plans are equal."""
    schema = pa.schema([pa.field("one", pa.int32(), False)])
    return MemorySource(schema, "one row", pa.table({"one": pa.array([1], pa.int32())}))
