from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.expr import AggregateCall, Expr
from kquery_spark.logical import format_plan
from kquery_spark.optimizer import optimize
from kquery_spark.physical import spill
from kquery_spark.physical.aggregates import aggregation
from kquery_spark.planner import plan_query
from kquery_spark.planner.lowering import aggregate as aggregate_lowering
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch, concat
from tests.physical.harness import (
    CONFIGS,
    PiecesSource,
    assert_like_spark,
    assert_same_rows,
    c,
    call,
    lit,
    register,
    rows_of,
    run,
    scan,
)
from tests.physical.test_aggregate import EMPTY, MIXED, aggregate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession) -> None:
    register(spark, mixed=MIXED, empty=EMPTY)


@pytest.mark.parametrize("many_groups", [False, True])
@pytest.mark.parametrize("keys", [[], ["g"], ["f", "b"]])
@pytest.mark.parametrize("name,table", [("mixed", MIXED), ("empty", EMPTY)])
@pytest.mark.parametrize("sets", [1, 3])
def test_distinct_beside_other_aggregates(
    sets: int,
    name: str,
    table: pa.Table,
    keys: list[str],
    many_groups: bool,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if many_groups:
        monkeypatch.setattr(aggregate_lowering, "_MAX_SINGLE_TASK_GROUPS", 0)
    child = scan(table)
    some = call("gt", c(child, "i"), lit(0, t.INT))
    calls: list[Expr] = [
        AggregateCall.of("avg", c(child, "d")),
        AggregateCall.of("count", c(child, "i"), distinct=True),
        AggregateCall.of("sum", c(child, "i"), distinct=True),
        AggregateCall.of("count"),
        AggregateCall.of("count", condition=some),
        AggregateCall.of("var_pop", c(child, "i")),
        AggregateCall.of("min", c(child, "s")),
    ]
    strings = [
        "avg(d)",
        "count(DISTINCT i)",
        "sum(DISTINCT i)",
        "count(*)",
        "count(*) FILTER (WHERE i > 0)",
        "var_pop(i)",
        "min(s)",
    ]
    if sets > 1:
        calls += [
            AggregateCall.of("count", c(child, "s"), c(child, "b"), distinct=True),
            AggregateCall.of("count", c(child, "s"), distinct=True, condition=some),
            AggregateCall.of("avg", c(child, "d"), distinct=True),
        ]
        strings += ["count(DISTINCT s, b)", "count(DISTINCT s) FILTER (WHERE i > 0)", "avg(DISTINCT d)"]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    sql = f"SELECT {', '.join([*keys, *strings])} FROM {name}{by}"
    assert_like_spark(spark, sql, aggregate(child, keys, *calls))


@pytest.mark.parametrize("keys", [[], ["g"], ["f", "b"]])
@pytest.mark.parametrize("table", [MIXED, EMPTY])
def test_large_groups_in_one_task_have_two_levels(
    table: pa.Table, keys: list[str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two levels can spill, while a single operator would put all rows of a group into one batch."""
    monkeypatch.setattr(aggregate_lowering, "_MAX_DISTINCT_GROUP_BYTES", -1)
    child = scan(table)
    plan = aggregate(
        child,
        keys,
        AggregateCall.of("count", c(child, "i"), distinct=True),
        AggregateCall.of("avg", c(child, "d")),
        AggregateCall.of("count", c(child, "s"), distinct=True),
    )
    text = format_plan(plan_query(optimize(plan), CONFIGS[0]))
    assert "AggregateExec: merge" in text and "AggregateExec: single" not in text
    view = "mixed" if table is MIXED else "empty"
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    sql = f"SELECT {', '.join([*keys, 'count(DISTINCT i)', 'avg(d)', 'count(DISTINCT s)'])} FROM {view}{by}"
    assert_like_spark(spark, sql, plan)


def test_large_groups_in_one_task_spill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate_lowering, "_MAX_DISTINCT_GROUP_BYTES", 0)
    values = pa.table({"v": range(50_000)})
    child = scan(values, rows_each=1000)
    plan = aggregate(child, [], AggregateCall.of("count", c(child, "v"), distinct=True))
    config = replace(CONFIGS[0], memory_bytes=200_000)
    largest = 0

    def measured(schema: pa.Schema, batches: list[Batch]) -> Batch:
        nonlocal largest
        largest = max(largest, sum(batch.nbytes for batch in batches))
        return concat(schema, batches)

    for module in (aggregation, spill):
        monkeypatch.setattr(module, "concat", measured)
    assert rows_of(run(plan, config)) == [(50_000,)]
    assert 0 < largest < 300_000


def test_distinct_values_meet_before_they_are_counted() -> None:
    rng = np.random.default_rng(9)
    table = pa.table(
        {
            "g": rng.integers(0, 5, 30_000),
            "v": rng.integers(0, 9000, 30_000),
            "w": rng.integers(0, 40, 30_000),
        }
    )
    child = scan(table, rows_each=4000)
    plan = aggregate(
        child,
        ["g"],
        AggregateCall.of("count", c(child, "v"), distinct=True),
        AggregateCall.of("sum", c(child, "w")),
    )
    want = {g: (set(), 0) for g in range(5)}
    for g, v, w in zip(*(table[n].to_pylist() for n in "gvw"), strict=True):
        values, total = want[g]
        values.add(v)
        want[g] = values, total + w
    for config in CONFIGS:
        assert {r[0]: r[1:] for r in rows_of(run(plan, config))} == {
            g: (len(v), s) for g, (v, s) in want.items()
        }
    text = format_plan(plan_query(optimize(plan), replace(CONFIGS[1])))
    assert [w for w in ("partial", "merge", "mixed", "final") if f"AggregateExec: {w}" in text] == [
        "partial",
        "merge",
        "mixed",
        "final",
    ]


@pytest.mark.parametrize("many_groups", [False, True])
@pytest.mark.parametrize(
    "key,calls",
    [
        ("x.0", "sum(v) AS x"),
        ("x.1", "sum(v) AS x, count(DISTINCT d) AS n"),
        ("x.0", "sum(v) AS x, count(DISTINCT d) AS n"),
        ("n.0", "sum(v) AS x, count(DISTINCT d) AS n"),
        ("__set", "sum(v) AS x, count(DISTINCT d) AS n, count(DISTINCT v) AS m"),
        ("__distinct_0_0", "sum(v) AS x, count(DISTINCT d) AS n"),
        ("__input_0", "sum(v) AS __key_0, count(DISTINCT d) AS n, count(DISTINCT v) AS m"),
    ],
)
def test_keys_with_the_names_of_internal_columns(
    key: str, calls: str, many_groups: bool, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    if many_groups:
        monkeypatch.setattr(aggregate_lowering, "_MAX_SINGLE_TASK_GROUPS", 0)
    table = pa.table(
        {
            key: pa.array([i % 5 for i in range(60)], pa.int32()),
            "other": [str(i % 2) for i in range(60)],
            "v": range(60),
            "d": [i % 7 for i in range(60)],
        }
    )
    register(spark, names=table)
    for by in (f"`{key}`", f"`{key}`, other", f"ROLLUP (other, `{key}`)"):
        sql = f"SELECT `{key}`, {calls} FROM names GROUP BY {by}"
        want = spark.sql(sql).toArrow()
        for config in CONFIGS:
            context = kq.ExecutionContext(config=config)
            context.register_source("names", PiecesSource(3, table))
            assert_same_rows(context.sql(sql).toArrow(), want, note=f"{sql} [{config}]")
