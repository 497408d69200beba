"""What every source test does: read files with Spark and with our source, and compare rows and types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kquery_spark.sources.base import Source
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def written(directory: Path, text: str | bytes, name: str = "lines.txt") -> Path:
    """Write a file of text; return its path."""
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_all(source: Source, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of a source, split by split."""
    names = source.schema.names if columns is None else list(columns)
    schema = pa.schema([source.schema.field(n) for n in names])
    batches = [b.to_arrow() for split in source.splits() for b in source.read(split, names)]
    return (
        pa.Table.from_batches(batches, schema)
        if names
        else pa.table({"n": pa.array([sum(b.num_rows for b in batches)])})
    )


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, dict):
        return tuple((k, _key(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return tuple(_key(v) for v in value)
    return value


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples that can be compared and sorted: times as integers, NaN equal to itself."""
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
        elif pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        columns.append([_key(v) for v in column.to_pylist()])
    return sorted(zip(*columns, strict=True), key=repr)


def assert_same(df: DataFrame, source: Source, columns: Sequence[str] | None = None) -> None:
    """Spark's answer and the source's are the same rows of the same types."""
    if columns is not None:
        df = df.select(*[f"`{c}`" for c in columns])
    names = source.schema.names if columns is None else list(columns)
    assert df.columns == names
    assert [f.dataType.simpleString() for f in df.schema] == [
        t.spark_name(source.schema.field(n).type) for n in names
    ]
    ours, spark = rows_of(read_all(source, columns)), rows_of(df.toArrow())
    wrong = [pair for pair in zip(ours, spark, strict=False) if pair[0] != pair[1]]
    assert len(ours) == len(spark) and not wrong, (len(ours), len(spark), wrong[:5])
