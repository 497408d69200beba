"""GroupPythonExec and MapPythonExec with evaluations of this process: groups, batches, keys, how their plans are lowered."""

from __future__ import annotations

from collections.abc import Iterator

import cloudpickle
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kquery_spark.errors import PlanError, SerializationError
from kquery_spark.expr import Column, Expr, Named
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.logical import GroupPython, LogicalPlan, MapPython, Scan, format_plan
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.optimizer import optimize
from kquery_spark.physical.operators import (
    ExchangeExec,
    GroupPythonExec,
    MapPythonExec,
    PhysicalPlan,
    SortExec,
    TaskContext,
)
from kquery_spark.planner import plan_query
from kquery_spark.service.requests import PlanRequest, read_request
from kquery_spark.sources.memory import memory_source
from kquery_spark.stages.serialization import from_bytes, to_bytes
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from tests.physical.harness import CONFIGS
from tests.physical.test_eval_python import SCHEMA, A, Rows

S = Column("s", t.STRING)
VALUE = pa.field("v", t.LONG)
Group = Iterator[pa.RecordBatch]


def sums(groups: Iterator[Group]) -> Iterator[pa.RecordBatch]:
    for group in groups:
        yield pa.RecordBatch.from_arrays(
            [pa.array([sum(pc.sum(b.column(0)).as_py() for b in group)])], ["_0"]
        )


def sizes_of_batches(groups: Iterator[Group]) -> Iterator[pa.RecordBatch]:
    for group in groups:
        yield pa.RecordBatch.from_arrays([pa.array([b.num_rows for b in group], t.LONG)], ["_0"])


def run(evaluate: object, child: PhysicalPlan, keys: tuple[Expr, ...], most: int, aggregates: bool) -> list[dict[str, object]]:  # fmt: skip
    named = tuple(Named(key, f"k{i}") for i, key in enumerate(keys))
    output = pa.schema([*(key.field for key in named if aggregates), VALUE])
    calls = PythonCalls(pa.schema([VALUE]), ("f(#a)",), cloudpickle.dumps(evaluate), most)
    plan = GroupPythonExec(child, named, (A,), calls, aggregates, output)
    return [row for batch in plan.run(TaskContext()) for row in batch.to_arrow().to_pylist()]


@pytest.mark.parametrize("sizes", [(), (1,), (1,) * 9, (20,), (3, 4, 13, 1), (8, 6)])
def test_groups_may_span_batches(sizes: tuple[int, ...]) -> None:
    tens = pa.array([i // 10 for i in range(sum(sizes))])
    actual = run(sums, Tens(sizes), (S,), 4, True)
    expected = (
        pa.table({"k": tens, "a": range(sum(sizes))}).group_by("k").aggregate([("a", "sum")]).to_pylist()
    )
    assert actual == [{"k0": str(row["k"]), "v": row["a_sum"]} for row in expected]
    whole = run(sums, Tens(sizes), (), 4, True)
    assert whole == ([{"v": sum(range(sum(sizes)))}] if sum(sizes) else [])


class Tens(Rows):
    """As ``Rows``, with a text for each ten rows."""

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        for batch in super().execute(task):
            numbers = batch.columns[0]
            yield Batch(SCHEMA, (numbers, pc.divide(numbers, 10).cast(t.STRING)), batch.num_rows)


def test_batches_of_a_group_are_full_but_the_last() -> None:
    actual = [row["v"] for row in run(sizes_of_batches, Tens((3, 9, 8)), (S,), 4, False)]
    assert actual == [4, 4, 2, 4, 4, 2]
    assert [row["v"] for row in run(sizes_of_batches, Tens((3, 9, 8)), (S,), 0, False)] == [10, 10]


def test_a_result_for_each_group() -> None:
    with pytest.raises(PlanError, match="no results for the last 1 rows"):
        run(lambda groups: (b for i, b in enumerate(sums(groups)) if i), Tens((20,)), (S,), 4, True)


def test_a_map_is_called_without_rows_and_reads_lazily() -> None:
    taken: list[int] = []

    def first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch, _ in zip(batches, range(1), strict=False))
        yield pa.RecordBatch.from_arrays([pa.array([rows], t.LONG)], ["_0"])

    class Counted(Rows):
        def execute(self, task: TaskContext) -> Iterator[Batch]:
            for batch in super().execute(task):
                taken.append(batch.num_rows)
                yield batch

    for sizes, actual, read in (((), 0, []), ((5, 5, 5), 5, [5, 5])):
        taken.clear()
        calls = PythonCalls(pa.schema([VALUE]), ("f",), cloudpickle.dumps(first), 5)
        plan = MapPythonExec(Counted(sizes), (A,), calls, pa.schema([VALUE]))
        assert [b.columns[0].to_pylist() for b in plan.run(TaskContext())] == [[actual]]
        assert taken == read


@pytest.fixture
def scan() -> Scan:
    return Scan("t", memory_source(pa.table({"a": [1, 2, 3], "s": ["x", "y", "z"]}, SCHEMA)))


def grouped(child: LogicalPlan, aggregates: bool = True) -> GroupPython:
    calls = PythonCalls(pa.schema([VALUE]), ("f(#a)",), cloudpickle.dumps(sums), 9)
    return GroupPython(child, (Named(S, "s"),), (A,), calls, aggregates)


def mapped(child: LogicalPlan) -> MapPython:
    return MapPython(child, (A,), PythonCalls(pa.schema([VALUE]), ("f(#a)",), b"code", 9))


def test_groups_meet_in_one_task_in_order(scan: Scan) -> None:
    plan = plan_query(optimize(grouped(scan)), CONFIGS[2])
    assert isinstance(plan, GroupPythonExec) and isinstance(plan.child, SortExec)
    assert isinstance(plan.child.child, ExchangeExec)
    assert "groupExpr=[#s], calls=[f(#a)]" in format_plan(plan)


def test_columns_are_pruned_below(scan: Scan) -> None:
    assert "projection=[a]" in str(optimize(mapped(scan)))


@pytest.mark.parametrize("make", [grouped, mapped])
def test_plans_with_functions_travel_but_not_from_strangers(scan: Scan, make: object) -> None:
    plan = make(scan)  # type: ignore[operator]
    assert from_bytes(to_bytes(plan), LogicalPlan) == plan
    with pytest.raises(SerializationError, match="cannot have a"):
        read_request(PlanRequest(Analyzed(plan, tuple(plan.schema.names))).ticket)
