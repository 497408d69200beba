"""Clustered inputs are joined and grouped by key range without a shuffle, and every way of running gives the same rows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import ExecutionError
from kquery_spark.expr import AggregateCall, Call, Literal, Named
from kquery_spark.logical import Aggregate, Filter, Join, JoinKind, LogicalPlan, Projection, Scan
from kquery_spark.logical.join import JoinKey
from kquery_spark.optimizer import optimize
from kquery_spark.planner import plan_query
from kquery_spark.planner.copartition import find_ranges
from kquery_spark.planner.key_classes import key_classes
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.stages import build_stages
from tests.conftest import settings, uncompiled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RANGED = EngineConfig(small_bytes=0, split_bytes=40_000)
HASHED = replace(RANGED, broadcast_bytes=0)
ONE_TASK = EngineConfig(small_bytes=1 << 40)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scan]:
    """orders (unique keys) and lines (several a key, row groups cut inside a key), both clustered; loose is shuffled."""
    directory: Path = tmp_path_factory.mktemp("clustered")
    rng = np.random.default_rng(7)
    orders = np.arange(0, 20_000, 2)
    lines = np.sort(rng.choice(np.arange(0, 20_400), 30_000))
    pq.write_table(
        pa.table({"o_key": orders, "o_kind": orders % 7}), directory / "orders.parquet", row_group_size=1_500
    )
    pq.write_table(
        pa.table(
            {"l_key": lines, "l_part": rng.integers(0, 50, len(lines)), "l_value": np.arange(len(lines))}
        ),
        directory / "lines.parquet",
        row_group_size=2_000,
    )
    loose = rng.permutation(orders)
    pq.write_table(
        pa.table({"x_key": loose, "x_value": loose * 3}), directory / "loose.parquet", row_group_size=1_000
    )
    return {
        n: Scan(n, parquet_source([str(directory / f"{n}.parquet")])) for n in ("orders", "lines", "loose")
    }


def rows(plan: LogicalPlan, config: EngineConfig) -> list[tuple[object, ...]]:
    physical = plan_query(optimize(plan), config)
    table = LocalExecutor(build_stages(physical, config), config).table()
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True), key=repr)


def stage_text(plan: LogicalPlan, config: EngineConfig) -> str:
    return str(build_stages(plan_query(optimize(plan), config), config))


def join(tables: dict[str, Scan], kind: JoinKind, left: str = "lines", right: str = "orders") -> Join:
    keys = {"lines": "l_key", "orders": "o_key", "loose": "x_key"}
    a, b = tables[left], tables[right]
    exists = "found" if kind is JoinKind.EXISTENCE else ""
    return Join(a, b, kind, (JoinKey(a.column(keys[left]), b.column(keys[right])),), exists=exists)


@pytest.mark.parametrize("kind", list(JoinKind))
def test_every_join_of_clustered_inputs_gives_the_rows_of_a_single_task(
    tables: dict[str, Scan], kind: JoinKind
):
    plan = join(tables, kind)
    expected = rows(plan, ONE_TASK)
    assert rows(plan, HASHED) == expected
    assert rows(plan, RANGED) == expected


def test_joining_clustered_inputs_needs_one_stage_of_several_tasks(tables: dict[str, Scan]):
    physical = plan_query(optimize(join(tables, JoinKind.INNER)), HASHED)
    graph = build_stages(physical, HASHED)
    assert len(graph.stages) == 1 and len(graph.stages[0].tasks) > 2
    edges = [s for task in graph.stages[0].tasks for _, splits in task.scans for s in splits if s.bounds]
    assert edges, "row groups were cut inside a key, so some must be read with bounds"


def test_inputs_that_are_not_clustered_are_exchanged(tables: dict[str, Scan]):
    loose = tables["loose"]
    other = Projection(loose, (Named(loose.column("x_key"), "k"), Named(loose.column("x_value"), "v")))
    plan = Join(loose, other, JoinKind.INNER, (JoinKey(loose.column("x_key"), other.column("k")),))
    assert stage_text(plan, HASHED).count("-> hash(") == 2
    assert rows(plan, HASHED) == rows(plan, ONE_TASK)


def test_grouping_by_the_clustered_key_is_finished_in_the_map_stage(tables: dict[str, Scan]):
    lines = tables["lines"]
    total = Named(AggregateCall.of("sum", lines.column("l_value")), "total")
    plan = Aggregate(lines, (Named(lines.column("l_key"), "key"),), (total,))
    assert "AggregateExec: single" in stage_text(plan, RANGED)
    assert rows(plan, RANGED) == rows(plan, ONE_TASK)


def test_grouping_by_another_column_is_partial_and_final(tables: dict[str, Scan]):
    lines = tables["lines"]
    joined = join(tables, JoinKind.LEFT)
    count = Named(AggregateCall.of("count"), "n")
    plan = Aggregate(joined, (Named(lines.column("l_part"), "part"),), (count,))
    text = stage_text(plan, RANGED)
    assert "partial" in text and "final" in text
    assert rows(plan, RANGED) == rows(plan, ONE_TASK)


def test_a_renamed_key_still_meets_the_other_side(tables: dict[str, Scan]):
    lines, orders = tables["lines"], tables["orders"]
    renamed = Projection(lines, (Named(lines.column("l_key"), "k"), Named(lines.column("l_value"), "v")))
    plan = Join(renamed, orders, JoinKind.SEMI, (JoinKey(renamed.column("k"), orders.column("o_key")),))
    assert "hash(" not in stage_text(plan, HASHED)
    assert rows(plan, HASHED) == rows(plan, ONE_TASK)


def test_a_filter_on_the_key_prunes_and_keeps_the_answer(tables: dict[str, Scan]):
    lines = tables["lines"]
    key = lines.column("l_key")
    near = Filter(lines, Call.of("lt", key, Literal(9_000, pa.int64())))
    plan = Join(near, tables["orders"], JoinKind.LEFT, (JoinKey(key, tables["orders"].column("o_key")),))
    assert rows(plan, RANGED) == rows(plan, HASHED) == rows(plan, ONE_TASK)


@pytest.mark.parametrize("kind", list(JoinKind))
def test_run_time_filters_change_no_answer(tables: dict[str, Scan], kind: JoinKind):
    """A selective build side: the probe scan drops rows early where the kind allows it."""
    orders = tables["orders"]
    few = Filter(orders, Call.of("eq", orders.column("o_kind"), Literal(3, pa.int64())))
    for left, right in (("lines", "few"), ("few", "lines")):
        sides = {"lines": (tables["lines"], "l_key"), "few": (few, "o_key")}
        (a, ak), (b, bk) = sides[left], sides[right]
        exists = "found" if kind is JoinKind.EXISTENCE else ""
        plan = Join(a, b, kind, (JoinKey(a.column(ak), b.column(bk)),), exists=exists)
        assert rows(plan, RANGED) == rows(plan, HASHED) == rows(plan, ONE_TASK)


def test_splits_that_all_span_the_same_keys_are_no_ranges(tmp_path: Path):
    """Some row groups begin a key later than the others: cutting there would leave nearly all to one task."""
    rng = np.random.default_rng(3)
    spans = np.concatenate([[i % 3, *rng.integers(3, 900, 998), 900] for i in range(20)])
    facts = pa.table({"f_key": spans, "f_value": np.arange(len(spans))})
    pq.write_table(facts, tmp_path / "facts.parquet", row_group_size=1_000)
    pq.write_table(pa.table({"d_key": np.arange(901)}), tmp_path / "dims.parquet", row_group_size=100)
    left, right = (Scan(n, parquet_source([str(tmp_path / f"{n}.parquet")])) for n in ("facts", "dims"))
    plan = Join(left, right, JoinKind.INNER, (JoinKey(left.column("f_key"), right.column("d_key")),))
    assert find_ranges(key_classes(plan), replace(RANGED, split_bytes=10_000_000)) is None
    assert rows(plan, RANGED) == rows(plan, ONE_TASK)


@pytest.mark.parametrize("kind", [JoinKind.SEMI, JoinKind.ANTI, JoinKind.LEFT])
def test_the_smaller_side_is_built_whatever_the_kind(tables: dict[str, Scan], kind: JoinKind):
    few = Filter(tables["orders"], Call.of("lt", tables["orders"].column("o_key"), Literal(400, pa.int64())))
    plan = Join(few, tables["lines"], kind, join(tables, kind, "orders", "lines").keys)
    assert f"{kind}, build=left" in stage_text(plan, RANGED)
    assert f"{kind}, build=left" in stage_text(plan, HASHED)
    assert rows(plan, RANGED) == rows(plan, HASHED) == rows(plan, ONE_TASK)


@pytest.fixture(scope="module")
def few(tables: dict[str, Scan], tmp_path_factory: pytest.TempPathFactory) -> Scan:
    """Few rows in no order, with keys that orders do not have, keys twice, and NULL keys."""
    rng = np.random.default_rng(5)
    keys = pa.array(rng.integers(-500, 22_000, 600), mask=rng.random(600) < 0.1)
    file = tmp_path_factory.mktemp("few") / "few.parquet"
    pq.write_table(pa.table({"f_key": keys, "f_value": np.arange(600)}), file, row_group_size=100)
    return Scan("few", parquet_source([str(file)]))


@pytest.mark.parametrize("null_safe", [False, True])
@pytest.mark.parametrize("kind", list(JoinKind))
def test_few_rows_are_sent_to_the_ranges_of_a_clustered_file(
    tables: dict[str, Scan], few: Scan, kind: JoinKind, null_safe: bool
):
    orders = tables["orders"]
    for left, right, names in ((orders, few, ("o_key", "f_key")), (few, orders, ("f_key", "o_key"))):
        key = JoinKey(left.column(names[0]), right.column(names[1]), null_safe)
        plan = Join(left, right, kind, (key,), exists="found" if kind is JoinKind.EXISTENCE else "")
        text = stage_text(plan, HASHED)
        assert "-> range(#f_key)" in text and "hash(" not in text
        assert rows(plan, HASHED) == rows(plan, ONE_TASK)


def test_what_met_by_range_is_grouped_where_it_is(tables: dict[str, Scan], few: Scan):
    orders = tables["orders"]
    key = JoinKey(orders.column("o_key"), few.column("f_key"))
    joined = Join(orders, few, JoinKind.INNER, (key,))
    total = Named(AggregateCall.of("sum", few.column("f_value")), "total")
    plan = Aggregate(joined, (Named(few.column("f_key"), "key"),), (total,))
    assert len(build_stages(plan_query(optimize(plan), HASHED), HASHED).stages) == 2
    assert rows(plan, HASHED) == rows(plan, ONE_TASK)


def test_what_met_by_range_is_not_taken_to_be_hashed(tables: dict[str, Scan], few: Scan):
    """The next join, with rows that are hashed, needs an exchange even though its key is the same."""
    orders, loose = tables["orders"], tables["loose"]
    near = Join(orders, few, JoinKind.INNER, (JoinKey(orders.column("o_key"), few.column("f_key")),))
    plan = Join(near, loose, JoinKind.LEFT, (JoinKey(near.column("o_key"), loose.column("x_key")),))
    text = stage_text(plan, HASHED)
    assert "range(#f_key)" in text and text.count("-> hash(") == 2
    assert rows(plan, HASHED) == rows(plan, ONE_TASK)


@pytest.mark.parametrize("ansi", [False, True])
def test_decimals_are_summed_by_distinct_value_if_tasks_share_the_groups(
    ansi: bool, spark: SparkSession, tmp_path: Path
):
    """The sums of the values 1 and 2 of group 3 overflow, but their total does not. A join relies on the same groups."""
    sizes = [Decimal(6 * 10**37 if key == 3 else 1) for key in range(200) for _ in range(4)]
    table = pa.table(
        {
            "k": np.repeat(np.arange(200), 4),
            "v": [1, 1, 2, 2] * 200,
            "d": pa.array([s if i % 4 < 2 else -s for i, s in enumerate(sizes)], pa.decimal128(38, 0)),
        }
    )
    file = str(tmp_path / "t.parquet")
    pq.write_table(table, file, row_group_size=40)
    spark.read.parquet(file).createOrReplaceTempView("shared_groups")
    grouped = "SELECT k, sum(d) AS s, count(DISTINCT v) AS n FROM shared_groups GROUP BY k"
    joined = f"SELECT a.k, s, n, v FROM ({grouped}) AS a JOIN shared_groups AS b ON a.k = b.k"
    config = EngineConfig(small_bytes=0, split_bytes=1_000, broadcast_bytes=0)
    context = kq.ExecutionContext(config=config, ansi=ansi)
    context.register_parquet("shared_groups", file)
    for sql in (grouped, joined):
        with settings(spark, {"spark.sql.ansi.enabled": str(ansi).lower()}), uncompiled(spark):
            if ansi:
                with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
                    spark.sql(sql).toArrow()
                with pytest.raises(ExecutionError, match="ARITHMETIC_OVERFLOW"):
                    context.sql(sql).to_arrow()
                continue
            want = spark.sql(sql).toArrow()
        order = [(name, "ascending") for name in want.column_names]
        actual = context.sql(sql).to_arrow()
        assert actual.sort_by(order).to_pylist() == want.sort_by(order).to_pylist()
        assert None in actual["s"].to_pylist()
