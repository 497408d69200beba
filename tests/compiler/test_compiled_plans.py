"""An equal plan over the same files is compiled once; plans over changed or remote files are compiled again."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kquery_spark import kquery_plan
from kquery_spark.compiler import compiled_plans
from kquery_spark.compiler.compiled_plans import CompiledPlans
from kquery_spark.compiler.placement import IN_ANY_ORDER, IN_TASK_ORDER
from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Call, Column, Literal
from kquery_spark.logical import Filter, Input, LogicalPlan, Scan
from kquery_spark.sources.base import Split
from kquery_spark.sources.parquet.source import ParquetSource, parquet_source
from kquery_spark.types import names as t

CONFIG = EngineConfig()


@pytest.fixture
def path(tmp_path: Path) -> str:
    pq.write_table(pa.table({"k": range(100)}), tmp_path / "t.parquet", row_group_size=10)
    return str(tmp_path / "t.parquet")


def plan_of(path: str, limit: int = 7) -> LogicalPlan:
    condition = Call.of("lt", Column("k", t.LONG, True), Literal(limit, t.LONG))
    return Filter(Scan("t", parquet_source([path])), condition)


def test_an_equal_plan_is_compiled_once(path: str) -> None:
    plans = CompiledPlans()
    first = plans.compile(plan_of(path), CONFIG, IN_TASK_ORDER)
    assert plans.compile(plan_of(path), CONFIG, IN_TASK_ORDER) is first
    assert plans.compile(plan_of(path, 8), CONFIG, IN_TASK_ORDER) is not first
    assert plans.compile(plan_of(path), CONFIG, IN_ANY_ORDER) is not first
    assert plans.compile(plan_of(path), replace(CONFIG, batch_rows=5), IN_TASK_ORDER) is not first


def test_a_rewritten_file_makes_another_plan(path: str) -> None:
    plans = CompiledPlans()
    first = plans.compile(plan_of(path), CONFIG, IN_TASK_ORDER)
    times = os.stat(path)
    pq.write_table(pa.table({"k": range(100, 200)}), path, row_group_size=10)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert plans.compile(plan_of(path), CONFIG, IN_TASK_ORDER) is not first


@dataclass(frozen=True)
class RemoteSource(ParquetSource):
    def is_remote(self, split: Split) -> bool:
        return True


def test_remote_files_and_rows_of_spark_are_not_remembered(path: str) -> None:
    local = parquet_source([path])
    remote = RemoteSource(local.files, local.table_schema)
    rows = Input("rows", pa.schema([pa.field("k", t.LONG)]))
    for leaf in (Scan("t", remote), rows):
        plans = CompiledPlans()
        first = plans.compile(leaf, CONFIG, IN_TASK_ORDER)
        assert plans.compile(leaf, CONFIG, IN_TASK_ORDER) is not first


def test_the_number_of_queries_and_of_their_splits_is_limited(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_plans, "_MAX_QUERIES", 2)
    plans = CompiledPlans()
    first, second = (plans.compile(plan_of(path, limit), CONFIG, IN_TASK_ORDER) for limit in (1, 2))
    assert plans.compile(plan_of(path, 1), CONFIG, IN_TASK_ORDER) is first
    plans.compile(plan_of(path, 3), CONFIG, IN_TASK_ORDER)
    assert plans.compile(plan_of(path, 1), CONFIG, IN_TASK_ORDER) is first
    assert plans.compile(plan_of(path, 2), CONFIG, IN_TASK_ORDER) is not second

    monkeypatch.setattr(compiled_plans, "_MAX_SPLITS", 15)
    plans = CompiledPlans()
    first = plans.compile(plan_of(path, 1), CONFIG, IN_TASK_ORDER)
    plans.compile(plan_of(path, 2), CONFIG, IN_TASK_ORDER)  # each plan has ten splits
    assert plans.compile(plan_of(path, 1), CONFIG, IN_TASK_ORDER) is not first


def test_a_query_that_is_planned_again_reads_the_current_files(spark: SparkSession, path: str) -> None:
    def total() -> int:
        frame = spark.read.parquet(path).groupBy().sum("k")
        return int(kquery_plan(frame, when="always", fallback="error").collect()[0][0])

    assert [total(), total()] == [4950, 4950]
    pq.write_table(pa.table({"k": range(50)}), path)
    assert total() == 1225
