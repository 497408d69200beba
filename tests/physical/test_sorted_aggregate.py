from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import AggregateCall, Call, Literal, SortKey, WindowCall
from kquery_spark.expr.windows import UP_TO_ROW
from kquery_spark.logical import Aggregate, Filter, Projection, Sort, Window, format_plan
from kquery_spark.physical.operators import AggregateExec, Phase, TaskContext
from kquery_spark.planner import plan_query
from kquery_spark.types import names as t
from tests.physical.harness import CONFIGS, assert_same_rows, batches_of, c, execute, named, read, run, scan

RNG = np.random.default_rng(4)
KEYS = np.sort(RNG.integers(0, 40, 3000))
T = pa.table(
    {"k": pa.array(KEYS, mask=KEYS == 0), "s": [f"n{k // 7}" for k in KEYS], "v": RNG.integers(0, 99, 3000)}
)


def plan(in_order: bool) -> AggregateExec:
    child = scan(T)
    calls = (
        named(AggregateCall.of("sum", c(child, "v")), "a"),
        named(AggregateCall.of("avg", c(child, "v")), "b"),
    )
    keys = (named(c(child, "k"), "k"), named(c(child, "s"), "s"))
    return AggregateExec(read(T), keys, calls, Phase.SINGLE, in_order)


@pytest.mark.parametrize("rows", [1, 7, 100, 5000])
def test_groups_in_order_come_out_as_they_end(rows: int) -> None:
    config = EngineConfig(batch_rows=rows)
    table = T.slice(0, 100 * rows + 400)  # a batch of one row costs as much as a large one
    want, _ = execute(plan(False), {"t": table}, config, rows=3000)
    assert want.num_rows > 5
    node = plan(True)
    actual, task = execute(node, {"t": table}, config, rows=rows)
    assert_same_rows(actual, want)
    metrics = task.metrics_of(node)
    assert metrics.rows == want.num_rows and metrics.nbytes > 0


def test_the_first_groups_do_not_wait_for_the_last_rows() -> None:
    pulled = []

    def source():
        for batch in batches_of(T, 100):
            pulled.append(batch)
            yield batch

    node = plan(True)
    first = next(node.run(TaskContext(config=EngineConfig(batch_rows=100), inputs={"t": source})))
    assert first.num_rows and len(pulled) < 10


def test_the_planner_sees_a_sort_on_the_keys() -> None:
    child = scan(T, rows_each=500)
    ordered = Sort(child, (SortKey(c(child, "s")), SortKey(c(child, "k")), SortKey(c(child, "v"))))
    calls = (named(AggregateCall.of("sum", c(child, "v")), "a"),)
    grouped = Aggregate(ordered, (named(c(child, "k"), "k"), named(c(child, "s"), "s")), calls)
    assert "single, in order" in format_plan(plan_query(grouped, CONFIGS[0]))
    assert_same_rows(run(grouped, CONFIGS[0]), run(replace(grouped, child=child), CONFIGS[1]))
    other = Aggregate(ordered, (named(c(child, "k"), "k"),), calls)
    assert "in order" not in format_plan(plan_query(other, CONFIGS[0]))


def test_the_planner_sees_partitions_of_a_window_and_looks_through_projections_and_filters() -> None:
    child = scan(T, rows_each=500)
    call = named(WindowCall.of("row_number", frame=UP_TO_ROW), "n")
    window = Window(child, (call,), (c(child, "k"),), (SortKey(c(child, "s")), SortKey(c(child, "v"))))
    renamed = Projection(
        window, (named(c(window, "k"), "key"), named(c(window, "s"), "s"), named(c(window, "n"), "n"))
    )
    few = Filter(renamed, Call.of("lteq", c(renamed, "n"), Literal(20, t.INT)))
    calls = (named(AggregateCall.of("max", c(few, "n")), "a"),)
    for names, in_order in ((["key"], True), (["s", "key"], True), (["s"], False)):
        grouped = Aggregate(few, tuple(named(c(few, n), n) for n in names), calls)
        physical = format_plan(plan_query(grouped, CONFIGS[0]))
        assert ("single, in order" in physical) is in_order
        counted = {}
        for row in run(few, CONFIGS[0]).to_pylist():
            key = tuple(row[n] for n in names)
            counted[key] = max(row["n"], counted.get(key, 0))
        for config in CONFIGS:
            found = run(grouped, config).to_pylist()
            assert {tuple(r[n] for n in names): r["a"] for r in found} == counted and len(found) == len(
                counted
            )
