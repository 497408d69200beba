"""An equal plan over the same files is compiled once; plans over changed files, other settings, or rows are compiled again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kquery_spark import kquery_plan
from kquery_spark.accelerate.planning import compile_parts
from kquery_spark.compiler import compiled_plans
from kquery_spark.compiler.compile import CompiledQuery
from kquery_spark.compiler.compiled_plans import compile_once
from kquery_spark.compiler.placement import IN_ANY_ORDER, IN_TASK_ORDER
from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Call, Column, Expr, Literal, Named
from kquery_spark.logical import Filter, Input, LogicalPlan, Projection, Scan
from kquery_spark.sources.deletes.equality_deletes import EqualityDeletesView
from kquery_spark.sources.lru_cache import LruCache
from kquery_spark.sources.memory import local_source
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.views.renamed import RenamedColumns
from kquery_spark.types import names as t

CONFIG = EngineConfig()


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_plans, "_QUERIES", LruCache(compiled_plans._MAX_BYTES))


@pytest.fixture
def path(tmp_path: Path) -> str:
    write(tmp_path / "t.parquet", 0)
    return str(tmp_path / "t.parquet")


def write(path: Path | str, first: int) -> None:
    """Write 100 numbers; all files have the same size."""
    numbers = pa.array(range(first, first + 100), t.LONG)
    pq.write_table(
        pa.table({"k": numbers}), path, row_group_size=10, use_dictionary=False, compression="none"
    )


def scan(path: str) -> Scan:
    return Scan("t", parquet_source([path]))


def plan_of(path: str, limit: int = 7) -> LogicalPlan:
    return Filter(scan(path), Call.of("lt", Column("k", t.LONG, True), Literal(limit, t.LONG)))


def compiled(plan: LogicalPlan) -> CompiledQuery:
    return compile_once(plan, CONFIG, IN_TASK_ORDER)


def test_an_equal_plan_is_compiled_once(path: str) -> None:
    first = compiled(plan_of(path))
    assert compiled(plan_of(path)) is first
    assert compiled(plan_of(path, 8)) is not first
    assert compile_once(plan_of(path), CONFIG, IN_ANY_ORDER) is not first
    assert compile_once(plan_of(path), replace(CONFIG, batch_rows=5), IN_TASK_ORDER) is not first


def test_a_rewritten_file_makes_another_plan(path: str) -> None:
    first = compiled(plan_of(path))
    before = os.stat(path)
    write(path, 100)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(path).st_size == before.st_size
    assert compiled(plan_of(path)) is not first


def test_rows_in_the_plan_or_from_spark_are_not_cached(path: str) -> None:
    rows = pa.schema([pa.field("k", t.LONG)])
    memory = local_source(pa.table({"k": [1, 2]}))
    deletes = EqualityDeletesView(parquet_source([path]), rows, (), ((),))
    views = (deletes, RenamedColumns(deletes, rows))
    for leaf in (Input("rows", rows), Scan("t", memory), *(Scan("t", view) for view in views)):
        assert compiled(leaf) is not compiled(leaf)


def test_the_memory_of_the_cache_is_limited(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = compiled_plans._QUERY_BYTES + 10 * compiled_plans._SPLIT_BYTES
    monkeypatch.setattr(compiled_plans, "_QUERIES", LruCache(2 * one))
    first, second = (compiled(plan_of(path, limit)) for limit in (1, 2))
    assert compiled(plan_of(path, 1)) is first
    compiled(plan_of(path, 3))
    assert compiled(plan_of(path, 1)) is first
    assert compiled(plan_of(path, 2)) is not second
    monkeypatch.setattr(compiled_plans, "_MAX_BYTES", one - 1)
    assert compiled(plan_of(path, 4)) is not compiled(plan_of(path, 4))


def test_a_deeply_nested_plan_is_compiled_again(path: str) -> None:
    """Comparing two of these would exceed Python's stack, and must not fail."""

    def deep() -> LogicalPlan:
        total: Expr = Column("k", t.LONG, True)
        for number in range(300):
            total = Call.of("add", total, Literal(number, t.LONG))
        return Projection(scan(path), (Named(total, "total"),))

    first, second = compiled(deep()), compiled(deep())
    assert first is not second
    assert first.graph == second.graph


def test_a_query_that_is_planned_again_reads_the_current_files(spark: SparkSession, path: str) -> None:
    def total() -> int:
        frame = spark.read.parquet(path).groupBy().sum("k")
        return int(kquery_plan(frame, when="always", fallback="error").collect()[0][0])

    assert [total(), total()] == [4950, 4950]
    before = os.stat(path)
    write(path, 100)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert total() == 14950


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("spark.sql.ansi.enabled", ("true", "false")),
        ("spark.sql.session.timeZone", ("UTC", "Asia/Tokyo")),
        ("spark.kquery.batchRows", ("100", "200")),
    ],
)
def test_settings_of_the_session_make_another_plan(
    spark: SparkSession, path: str, setting: str, values: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: list[CompiledQuery] = []

    def recorded(*arguments: object) -> CompiledQuery:
        queries.append(compile_once(*arguments))  # type: ignore[arg-type]
        return queries[-1]

    monkeypatch.setattr(compile_parts, "compile_once", recorded)
    sql = f"SELECT hour(timestamp_seconds(k)) AS h, sum(k + 1) FROM parquet.`{path}` GROUP BY h"
    before = spark.conf.get(setting, None)
    try:
        for value in (values[0], values[0], values[1]):
            spark.conf.set(setting, value)
            kquery_plan(spark.sql(sql), when="always", fallback="error")
    finally:
        if before is None:
            spark.conf.unset(setting)
        else:
            spark.conf.set(setting, before)
    first, again, other = queries
    assert again is first
    assert other is not first
