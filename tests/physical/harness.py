"""Run logical plans in several distributions, and compare with what Spark SQL answers on the same data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Call, Column, Expr, Literal, Named
from kquery_spark.logical import LogicalPlan, Scan
from kquery_spark.optimizer import optimize
from kquery_spark.physical.joins.join_table import JoinTable
from kquery_spark.physical.operators import PhysicalPlan, ReadExec, TaskContext
from kquery_spark.planner import plan_query
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.sources.base import Source, Split
from kquery_spark.stages import build_stages
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Vector
from tests.conftest import uncompiled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# one task; shuffles with several reduce tasks; replicated build sides
CONFIGS = (
    EngineConfig(small_bytes=1 << 30),
    EngineConfig(small_bytes=-1, broadcast_bytes=-1, shuffle_partitions=3),
    EngineConfig(small_bytes=-1, shuffle_partitions=2),
)


@dataclass(frozen=True)
class PiecesSource(Source):
    """A table in memory whose splits are of a few rows, so that small data meets many batches and tasks."""

    columnar: ClassVar[bool] = True
    rows_each: int
    table: Any = field(compare=False, repr=False)

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def splits(self) -> list[Split]:
        n, k = self.table.num_rows, self.rows_each
        return [Split(0, (i, min(k, n - i)), min(k, n - i), 100_000_000) for i in range(0, n, k)]

    def row_count(self) -> int | None:
        return int(self.table.num_rows)

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        start, length = split.pieces
        schema = pa.schema([self.schema.field(c) for c in columns])
        if not columns:
            yield Batch(schema, (), length)
            return
        for batch in self.table.select(list(columns)).slice(start, length).combine_chunks().to_batches():
            yield Batch.from_arrow(batch, schema)


def scan(table: pa.Table, name: str = "t", rows_each: int = 3) -> Scan:
    return Scan(name, PiecesSource(rows_each, table))


def run(plan: LogicalPlan, config: EngineConfig = CONFIGS[0]) -> pa.Table:
    graph = build_stages(plan_query(optimize(plan), config), config)
    return LocalExecutor(graph, config).table()


def batches_of(table: pa.Table, rows: int = 0) -> list[Batch]:
    if not table.num_columns:
        raise ValueError("needs columns")
    pieces = table.combine_chunks().to_batches(rows or None)
    return [Batch.from_arrow(p, table.schema) for p in pieces]


def read(table: pa.Table, name: str = "t") -> ReadExec:
    """A physical leaf; give its rows to ``execute``."""
    return ReadExec(name, table.schema)


def join_table(keys: Sequence[Vector], null_safe: Sequence[bool] | None = None) -> JoinTable:
    """A join table over build rows with these keys. Its memory limit allows arrays with one entry per possible code."""
    return JoinTable(keys, len(keys[0].data), null_safe or [False] * len(keys), 1 << 30)


def execute(
    plan: PhysicalPlan, tables: Mapping[str, pa.Table], config: EngineConfig | None = None, rows: int = 3
) -> tuple[pa.Table, TaskContext]:
    """Run one physical plan in one task over named tables cut into batches of ``rows``."""
    task = TaskContext(
        config=config or EngineConfig(),
        inputs={n: (lambda t=t: iter(batches_of(t, rows))) for n, t in tables.items()},
    )
    done = [b.to_arrow() for b in plan.run(task)]
    return pa.Table.from_batches(done, schema=plan.schema), task


def rows_of(table: pa.Table, ordered: bool = False) -> list[tuple[Any, ...]]:
    columns = [c.to_pylist() for c in table.columns]
    rows = [tuple(map(_plain, row)) for row in zip(*columns, strict=True)]
    return rows if ordered else sorted(rows, key=_sort_key)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((k, _plain(v)) for k, v in value.items())
    return value


def _sort_key(row: tuple[Any, ...]) -> str:
    return repr(tuple(f"{v:.6g}" if isinstance(v, float) else v for v in row))


def assert_same_rows(actual: pa.Table, want: pa.Table, ordered: bool = False, note: str = "") -> None:
    a, b = rows_of(actual, ordered), rows_of(want, ordered)
    assert len(a) == len(b), f"{note}: {len(a)} rows, not {len(b)}\n{a[:20]}\n{b[:20]}"
    for x, y in zip(a, b, strict=True):
        assert all(_close(p, q) for p, q in zip(x, y, strict=True)), (
            f"{note}: {x} is not {y}\n{a[:30]}\n{b[:30]}"
        )


def assert_same_by(actual: pa.Table, want: pa.Table, keys: Sequence[str]) -> None:
    """As ``assert_same_rows``, where ``keys`` identify all rows: compares columns, many rows take no time."""
    assert actual.schema == want.schema
    assert actual.num_rows == want.num_rows
    order = [(key, "ascending") for key in keys]
    actual, want = actual.sort_by(order), want.sort_by(order)
    assert want.select(list(keys)).group_by(list(keys)).aggregate([]).num_rows == want.num_rows
    for name, a, b in zip(want.column_names, actual.columns, want.columns, strict=True):
        if not pa.types.is_floating(a.type):
            assert a.equals(b), f"{name}: {a} is not {b}"
            continue
        assert a.is_null().equals(b.is_null()), f"{name}: {a} is not {b}"
        np.testing.assert_allclose(a.fill_null(0.0), b.fill_null(0.0), rtol=1e-9, atol=0.0, err_msg=name)


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=0.0) or a == b
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return a == b and a.as_tuple().exponent == b.as_tuple().exponent
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_close(p, q) for p, q in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)


def register(spark: SparkSession, **tables: pa.Table) -> None:
    for name, table in tables.items():
        spark.createDataFrame(table).createOrReplaceTempView(name)


def assert_like_spark(
    spark: SparkSession,
    sql: str,
    plan: LogicalPlan,
    ordered: bool = False,
    configs: Sequence[EngineConfig] = CONFIGS,
) -> None:
    """Every distribution of ``plan`` gives the rows and the types that Spark gives for ``sql``."""
    with uncompiled(spark):
        want = spark.sql(sql).toArrow()
    for number, config in enumerate(configs):
        actual = run(plan, config)
        assert [_type(f.type) for f in actual.schema] == [_type(f.type) for f in want.schema], sql
        assert_same_rows(actual, want, ordered, f"{sql} [config {number}]")


def _type(dtype: pa.DataType) -> str:
    return str(dtype).replace("large_", "").replace(" not null", "").replace("element:", "item:")


def c(plan: LogicalPlan, name: str) -> Column:
    return plan.column(name)


def lit(value: Any, dtype: pa.DataType) -> Literal:
    return Literal(value, dtype)


def call(name: str, *args: Expr) -> Call:
    return Call.of(name, *args)


def named(expr: Expr, name: str) -> Named:
    return Named(expr, name)


def open_files(directory: Path) -> list[str]:
    """Files in a directory that this process has open, with or without a name."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:  # that of the listing itself
            continue
    return [name for name in found if name.startswith(str(directory))]
