"""One compiler for every way of running a plan: the stages follow from the placement, the rows do not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.compiler import Placement, compile_query
from kquery_spark.compiler.placement import IN_ANY_ORDER, IN_TASK_ORDER
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SourceError
from kquery_spark.expr import Column
from kquery_spark.logical import LogicalPlan, Scan, Sort
from kquery_spark.logical.sort import SortKey
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.sources.parquet.path_source import parquet_source

COUNT = 30_000
ROWS = pa.table({"k": [n * 7919 % COUNT for n in range(COUNT)], "v": list(range(COUNT))})
SPLIT = EngineConfig(parallelism=3, small_bytes=0, driver_bytes=0, split_bytes=60_000)


@pytest.fixture
def ordered(tmp_path: Path) -> LogicalPlan:
    """A table of several row groups in an order."""
    pq.write_table(ROWS, tmp_path / "t.parquet", row_group_size=2_000)
    scan = Scan("t", parquet_source([str(tmp_path)]))
    return Sort(scan, (SortKey(Column("k", pa.int64(), True)),))


def keys(plan: LogicalPlan, placement: Placement) -> list[int]:
    query = compile_query(plan, SPLIT, placement)
    return LocalExecutor(query.graph, query.config).table().column("k").to_pylist()


@pytest.mark.parametrize("placement", [IN_TASK_ORDER, IN_ANY_ORDER, Placement(False, threads=2)], ids=str)
def test_every_placement_gives_the_same_rows(ordered: LogicalPlan, placement: Placement) -> None:
    assert keys(ordered, placement) == list(range(COUNT))


def test_tasks_share_a_sort_only_where_their_order_is_kept(ordered: LogicalPlan) -> None:
    query = compile_query(ordered, SPLIT, IN_TASK_ORDER)
    assert query.is_ordered
    assert query.shares_sort
    assert not query.placed(IN_ANY_ORDER).shares_sort
    assert len(query.placed(IN_ANY_ORDER).graph.result.tasks) == 1


def test_a_placement_is_compiled_once_and_not_optimized_again(ordered: LogicalPlan) -> None:
    query = compile_query(ordered, SPLIT)
    assert query.placed(IN_TASK_ORDER) is query
    assert query.placed(IN_ANY_ORDER) is query.placed(IN_ANY_ORDER)
    assert query.placed(IN_ANY_ORDER).steps is query.steps


def test_threads_of_the_driver_are_as_many_as_the_placement_says() -> None:
    query = kq.ExecutionContext().sql("SELECT 1 AS one").analyzed
    compiled = compile_query(query.plan, SPLIT, Placement(False, threads=3))
    assert compiled.config.parallelism == 3
    assert compiled.placed(IN_ANY_ORDER).config is SPLIT


def test_files_that_are_sure_to_fail_are_met_before_anything_runs(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": ["x"]}), tmp_path / "b.parquet")
    scan = Scan("t", parquet_source([str(tmp_path)]))
    with pytest.raises(SourceError, match=r"b\.parquet"):
        compile_query(scan, SPLIT)
    compile_query(scan, SPLIT, check=False)


def test_hundreds_of_tiny_files_are_divided_among_tasks(tmp_path: Path) -> None:
    for i in range(300):
        pq.write_table(pa.table({"k": [i], "v": [1]}), tmp_path / f"{i:03}.parquet")
    context = kq.ExecutionContext()
    context.register_parquet("t", tmp_path)
    config = EngineConfig(parallelism=2)

    def tasks(sql: str) -> int:
        return len(compile_query(context.sql(sql).plan, config).graph.stages[0].tasks)

    assert tasks("SELECT k % 7 AS g, sum(v) AS s FROM t GROUP BY k % 7") == 2
    # statistics exclude all but one file
    assert tasks("SELECT k % 7 AS g, sum(v) AS s FROM t WHERE k = 17 GROUP BY k % 7") == 1
