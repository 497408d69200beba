"""The worked examples about operators at work: what is copied, pulled, held and counted."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark import col, lit
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import ExecutionError
from kquery_spark.expr import AggregateCall, Call, Column, Literal, Named, SortKey
from kquery_spark.logical import JoinKind
from kquery_spark.logical.join import JoinKey
from kquery_spark.optimizer import optimize
from kquery_spark.physical.expr import Program
from kquery_spark.physical.operators import (
    AggregateExec,
    BuildSide,
    FilterExec,
    JoinExec,
    LimitExec,
    Phase,
    ProjectionExec,
    ReadExec,
    SortExec,
    TaskContext,
)
from kquery_spark.planner import plan_query
from kquery_spark.sources.memory import memory_source
from kquery_spark.stages import build_stages
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch

X = Column("x", t.LONG)


def numbers(start: int, stop: int) -> Batch:
    return Batch.from_arrow(pa.record_batch({"x": range(start, stop)}), pa.schema([("x", t.LONG)]))


def leaf() -> ReadExec:
    return ReadExec("in", pa.schema([("x", t.LONG)]))


class Pulled:
    """Batches of ten numbers; ``count`` says how many were asked for, ``closed`` whether the reader said it is done."""

    def __init__(self, batches: int = 1000) -> None:
        self.batches, self.count, self.closed = batches, 0, False

    def __call__(self) -> Iterator[Batch]:
        try:
            for i in range(self.batches):
                self.count += 1
                yield numbers(10 * i, 10 * i + 10)
        finally:
            self.closed = True


def task(source: Any, **config: Any) -> TaskContext:
    return TaskContext(config=EngineConfig(**config), inputs={"in": source})


def test_a_literal_is_one_value_and_a_length():
    batch = numbers(0, 1_000_000)
    vector = Program([Literal(7, t.LONG)], batch.schema).run(batch)[0]
    assert vector.is_scalar and vector.data.as_py() == 7
    # it stays one value through expressions over it
    assert (
        Program([Call.of("add", Literal(7, t.LONG), Literal(1, t.LONG))], batch.schema)
        .run(batch)[0]
        .is_scalar
    )
    assert vector.physical(3).to_pylist() == [7, 7, 7]


def test_rows_of_a_batch_without_columns_are_known():
    batch = numbers(0, 5).select([])
    assert (batch.num_rows, batch.slice(1, 3).num_rows) == (5, 3)
    assert batch.to_arrow().num_rows == 5


def test_a_bare_column_is_not_copied():
    plan = ProjectionExec(leaf(), (Named(X, "y"), Named(Call.of("add", X, Literal(1, t.LONG)), "z")))
    batch = numbers(0, 4)
    found = next(plan.run(task(lambda: iter([batch]))))
    assert found.columns[0] is batch.columns[0]
    assert found.to_arrow().to_pydict() == {"y": [0, 1, 2, 3], "z": [1, 2, 3, 4]}


def test_filters_have_a_way_for_each_selectivity_and_count():
    def way(condition: Call) -> tuple[dict[str, int], list[int]]:
        plan = FilterExec(leaf(), condition)
        context = task(lambda: iter([numbers(0, 100)]))
        rows = [v for b in plan.run(context) for v in b.columns[0].to_pylist()]
        metrics = context.metrics_of(plan)
        assert (metrics.rows, metrics.batches) == (len(rows), 1 if rows else 0)  # empty batches are skipped
        return metrics.extra, rows

    def less(n: int) -> Call:
        return Call.of("lt", X, Literal(n, t.LONG))

    third = Call.of("eq", Call.of("mod", X, Literal(3, t.LONG)), Literal(0, t.LONG))
    assert way(less(100)) == ({"filter_all": 1}, list(range(100)))
    assert way(less(0)) == ({"filter_none": 1}, [])
    assert way(less(50)) == ({"filter_slice": 1}, list(range(50)))
    assert way(less(5)) == ({"filter_indices": 1}, [0, 1, 2, 3, 4])
    assert way(third) == ({"filter_mask": 1}, list(range(0, 100, 3)))
    null = Call.of("lt", X, Literal(None, t.LONG))
    assert way(null) == ({"filter_none": 1}, [])  # a NULL predicate drops the row


def test_a_limit_stops_pulling_once_satisfied():
    source = Pulled()
    plan = LimitExec(FilterExec(leaf(), Call.of("gteq", X, Literal(15, t.LONG))), 10, 3)
    rows = [v for b in plan.run(task(source)) for v in b.columns[0].to_pylist()]
    assert rows == list(range(18, 28))  # slices across batches
    assert source.count == 3 and source.closed


def test_a_limit_with_an_order_keeps_the_top_rows_only():
    before, most = pa.total_allocated_bytes(), 0

    def source() -> Iterator[Batch]:
        nonlocal most
        for i in range(40, 0, -1):
            yield numbers(100_000 * i, 100_000 * i + 100_000)
            most = max(most, pa.total_allocated_bytes() - before)

    plan = SortExec(leaf(), (SortKey(X),), 3)
    found = [v for b in plan.run(task(source)) for v in b.columns[0].to_pylist()]
    assert found == [100_000, 100_001, 100_002]
    assert most < 5 * 800_000  # of 40 batches of 800,000 bytes


def test_streaming_operators_answer_before_the_input_ends_and_blocking_ones_do_not():
    plans = {
        "projection": (ProjectionExec(leaf(), (Named(X, "x"),)), True),
        "filter": (FilterExec(leaf(), Call.of("gteq", X, Literal(0, t.LONG))), True),
        "sort": (SortExec(leaf(), (SortKey(X, False),)), False),
        "aggregate": (
            AggregateExec(leaf(), (Named(X, "x"),), (Named(AggregateCall.of("count"), "n"),), Phase.SINGLE), False,
        ),
        "sort aggregate": (
            AggregateExec(leaf(), (Named(X, "x"),), (Named(AggregateCall.of("count"), "n"),), Phase.SINGLE, True), True,
        ),
    }  # fmt: skip
    for name, (plan, streams) in plans.items():
        source = Pulled(100)
        running = plan.run(task(source, batch_rows=10))
        next(running)
        assert (source.count < 10) is streams, name
        running.close()
        assert source.closed, name  # the request to stop reaches every operator


def test_an_error_reaches_the_reader_from_below_every_operator():
    def failing() -> Iterator[Batch]:
        yield numbers(0, 10)
        raise ValueError("the cable is out")

    join = JoinExec(
        leaf(), ReadExec("other", pa.schema([("y", t.LONG)])), JoinKind.INNER, (JoinKey(X, Column("y", t.LONG)),), None,
        BuildSide.LEFT, pa.schema([("x", t.LONG), ("y", t.LONG)]),
    )  # fmt: skip
    for plan in (LimitExec(SortExec(leaf(), (SortKey(X),)), 1), join):
        with pytest.raises(ValueError, match="cable"):
            list(plan.run(task(failing)))


def test_the_sort_aggregate_holds_one_group():
    keys = np.repeat(np.arange(5), 20)
    batch = pa.record_batch({"k": keys, "v": np.arange(100)})
    schema = pa.schema([("k", t.LONG), ("v", t.LONG)])
    calls = tuple(Named(AggregateCall.of(f, Column("v", t.LONG)), f) for f in ("min", "max", "sum"))
    plan = AggregateExec(
        ReadExec("in", schema), (Named(Column("k", t.LONG), "k"),), calls, Phase.SINGLE, True
    )
    batches = [Batch.from_arrow(batch.slice(i, 7), schema) for i in range(0, 100, 7)]
    found = [r for b in plan.run(task(lambda: iter(batches), batch_rows=7)) for r in b.to_arrow().to_pylist()]
    assert found == [
        {"k": k, "min": 20 * k, "max": 20 * k + 19, "sum": sum(range(20 * k, 20 * k + 20))} for k in range(5)
    ]
    assert "single, in order" in plan.label()


def test_the_build_side_s_keys_filter_the_probe_side_early():
    context = kq.ExecutionContext(config=EngineConfig(parallelism=1))
    context.register_arrow("orders", pa.table({"o_id": range(100_000), "price": range(100_000)}))
    context.register_arrow("expected", pa.table({"w_id": [5, 70_000, 200_000]}))
    frame = context.sql("SELECT o_id, price FROM orders JOIN expected ON o_id = w_id")
    physical = plan_query(optimize(frame.plan), EngineConfig(parallelism=1))
    (stage,) = build_stages(physical, EngineConfig()).stages
    task = TaskContext(EngineConfig(), splits=stage.tasks[0].as_dict())
    prices = [p for batch in stage.plan.run(task) for p in batch.to_arrow().column("price").to_pylist()]
    assert sorted(prices) == [5, 70_000]
    operators = [stage.plan, *stage.plan.children, *(c for n in stage.plan.children for c in n.children)]
    (orders,) = [n for n in operators if n.label().startswith("ScanExec: orders")]
    assert task.metrics_of(orders).rows == 2  # not 100,000: the scan has dropped the others


def test_a_join_carries_only_what_is_needed():
    context = kq.ExecutionContext()
    context.register_arrow("l", pa.table({"k": [1, 2], "a": [10, 20], "b": [0, 0], "c": [5, 6]}))
    context.register_arrow("r", pa.table({"k": [1, 2], "d": [7, 8], "e": [0, 0], "f": [5, 7]}))
    frame = context.sql("SELECT a, d FROM l JOIN r ON l.k = r.k AND l.c < r.f")
    assert frame.collect() == [{"a": 20, "d": 8}]
    plan = frame.explain().split("== Optimized plan ==")[1]
    # KEY, PAYLOAD and FILTER columns come in, the OUTPUT columns go out
    assert "Scan: l; projection=[k, a, c]" in plan and "Scan: r; projection=[k, d, f]" in plan


@pytest.mark.parametrize(
    ("value", "target", "expected", "tried"),
    [
        ("'12'", "int", 12, 12), ("' 7 '", "bigint", 7, 7), ("'abc'", "int", "CAST_INVALID_INPUT", None),
        ("'1.5'", "int", "CAST_INVALID_INPUT", None), ("300", "tinyint", "CAST_OVERFLOW", None),
        ("1.9D", "int", 1, 1), ("-1.9D", "int", -1, -1), ("1e20D", "bigint", "CAST_OVERFLOW", None),
        ("double('NaN')", "int", "CAST_OVERFLOW", None), ("1", "boolean", True, True), ("true", "int", 1, 1),
        ("'yes'", "boolean", True, True), ("'maybe'", "boolean", "CAST_INVALID_INPUT", None),
        ("123.456BD", "decimal(5,1)", Decimal("123.5"), Decimal("123.5")),
        ("123.456BD", "decimal(3,1)", "NUMERIC_VALUE_OUT_OF_RANGE", None), ("1.0D", "string", "1.0", "1.0"),
        ("1e7D", "string", "1.0E7", "1.0E7"), ("DATE'2024-02-29'", "string", "2024-02-29", "2024-02-29"),
        ("'2023-02-29'", "date", "CAST_INVALID_INPUT", None), ("CAST(NULL AS string)", "int", None, None),
    ],
)  # fmt: skip
def test_casts_in_ansi_mode_and_tried(value: str, target: str, expected: Any, tried: Any):
    context = kq.ExecutionContext()
    assert context.sql(f"SELECT try_cast({value} AS {target}) AS x").collect() == [{"x": tried}]
    if isinstance(expected, str) and expected.isupper() and "_" in expected:
        with pytest.raises(ExecutionError, match=expected):
            context.sql(f"SELECT CAST({value} AS {target}) AS x").collect()
    else:
        assert context.sql(f"SELECT CAST({value} AS {target}) AS x").collect() == [{"x": expected}]


def test_the_data_frame_is_lazy():
    asked: list[str] = []
    source = memory_source(pa.table({"x": [1, 2, 3]}))

    class Watched(type(source)):  # type: ignore[misc]
        def read(self, split: Any, columns: Any) -> Iterator[Batch]:
            asked.append("read")
            return super().read(split, columns)

    context = kq.ExecutionContext()
    context.register_source("t", Watched(source.table_schema, source.token, source.table))
    frame = context.table("t").filter(col("x") > 1).select((col("x") * lit(2)).alias("y")).sort("y").limit(5)
    frame.explain()
    assert frame.columns == ["y"] and asked == []
    assert frame.collect() == [{"y": 4}, {"y": 6}]
    assert asked == ["read"]


def test_the_data_frame_joins_aggregates_sorts_and_more(context: kq.ExecutionContext):
    employee = context.table("employee")
    states = employee.groupBy("state").agg(kq.count("*").alias("n"), kq.max("salary").alias("top"))
    assert states.sort(col("n").desc(), "state").collect() == [
        {"state": "CO", "n": 2, "top": 11500.0},
        {"state": None, "n": 1, "top": 11500.0},
        {"state": "CA", "n": 1, "top": 12000.0},
    ]
    joined = employee.join(states.select("state", "n"), "state").select("first_name", "n").sort("first_name")
    assert joined.collect() == [
        {"first_name": "Bill", "n": 1},
        {"first_name": "Gregg", "n": 2},
        {"first_name": "John", "n": 2},
    ]
    assert employee.select("salary").distinct().count() == 3
    assert employee.union(employee).limit(6).count() == 6


def test_grouping_sets_are_several_aggregations(context: kq.ExecutionContext):
    found = context.sql(
        "SELECT state, job_title, count(*) AS n FROM employee WHERE state = 'CO' GROUP BY ROLLUP(state, job_title)"
        " ORDER BY state NULLS LAST, job_title NULLS LAST"
    ).collect()
    assert [tuple(r.values()) for r in found] == [
        ("CO", "Driver", 1),
        ("CO", "Manager, Software", 1),
        ("CO", None, 2),
        (None, None, 2),
    ]
