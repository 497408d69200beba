"""EvalPythonExec with evaluations of this process: batches, results that end elsewhere, what a plan with one may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cloudpickle
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kquery_spark.errors import PlanError, SerializationError
from kquery_spark.expr import Call, Column, Literal
from kquery_spark.frontends.sql.analyzer import Analyzed
from kquery_spark.logical import EvalPython, Filter, Join, JoinKind, LogicalPlan, Scan, format_plan
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.optimizer import optimize
from kquery_spark.physical.operators import EvalPythonExec, PhysicalPlan, ReplicateExec, TaskContext
from kquery_spark.planner import plan_query
from kquery_spark.service.requests import PlanRequest, read_request
from kquery_spark.sources.memory import memory_source
from kquery_spark.stages.serialization import from_bytes, to_bytes
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from tests.physical.harness import CONFIGS

SCHEMA = pa.schema([("a", t.LONG), ("s", t.STRING)])
A = Column("a", t.LONG)
Evaluate = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Rows(PhysicalPlan):
    """Batches of ``rows`` rows each: ``a`` counts from 0."""

    sizes: tuple[int, ...]

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    def execute(self, task: TaskContext) -> Iterator[Batch]:
        start = 0
        for size in self.sizes:
            numbers = pa.array(range(start, start + size), t.LONG)
            strings = pa.array([f"s{i % 3}" for i in range(start, start + size)]).dictionary_encode()
            yield Batch(SCHEMA, (numbers, strings), size)
            start += size


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pc.multiply(batch.column(0), 2)], ["_0"])


def at_the_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    table = pa.Table.from_batches(doubled(batches))
    for start in range(0, table.num_rows, 5):
        yield table.slice(start, 5).combine_chunks().to_batches()[0]


def run(
    evaluate: Evaluate, sizes: tuple[int, ...], most: int, required: tuple[str, ...] = ("s", "a")
) -> list[Batch]:
    output = pa.schema([*(SCHEMA.field(name) for name in required), pa.field("v", t.LONG)])
    calls = PythonCalls(pa.schema([("v", t.LONG)]), ("f(#a)",), cloudpickle.dumps(evaluate), most)
    return list(EvalPythonExec(Rows(sizes), (A,), calls, required, output).run(TaskContext()))


@pytest.mark.parametrize("evaluate", [doubled, at_the_end])
@pytest.mark.parametrize("most", [0, 1, 4, 7, 1000])
@pytest.mark.parametrize("sizes", [(), (1,), (1,) * 9, (20,), (3, 4, 13, 1), (7, 7, 7), (8, 6)])
def test_results_stand_beside_their_rows(evaluate: Evaluate, most: int, sizes: tuple[int, ...]) -> None:
    rows = [row for batch in run(evaluate, sizes, most) for row in batch.to_arrow().to_pylist()]
    assert rows == [{"s": f"s{i % 3}", "a": i, "v": 2 * i} for i in range(sum(sizes))]


def test_batches_are_full_but_the_last() -> None:
    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([batch.num_rows] * batch.num_rows, t.LONG)], ["_0"])

    found = [n for batch in run(sizes, (3, 1, 9, 2, 4), 4, ()) for n in batch.columns[0].to_pylist()]
    assert found == [4] * 16 + [3] * 3


@pytest.mark.parametrize(
    ("evaluate", "said"),
    [
        (lambda batches: (b.slice(1) for b in doubled(batches)), "no results for the last 2 rows"),
        (lambda batches: (b for batch in doubled(batches) for b in (batch, batch)), "4 results for 0 rows"),
    ],
)
def test_too_few_and_too_many_results(evaluate: Evaluate, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        run(evaluate, (4, 4), 4)


def calls(child: LogicalPlan) -> EvalPython:
    made = PythonCalls(pa.schema([("v", t.LONG)]), ("f(#a)",), cloudpickle.dumps(doubled), 100)
    return EvalPython(child, (A,), made)


@pytest.fixture
def scan() -> Scan:
    return Scan("t", memory_source(pa.table({"a": [1, 2, 3], "s": ["x", "y", "z"]}, SCHEMA)))


def test_filters_stay_above_and_columns_are_pruned(scan: Scan) -> None:
    plan = optimize(Filter(calls(scan), Call.of("gt", A, Literal(1, t.LONG))))
    assert [line.strip().split(":")[0] for line in format_plan(plan).splitlines()] == [
        "Filter",
        "EvalPython",
        "Scan",
    ]
    assert "f(#a) AS v" in str(plan)
    assert calls(scan).prune_columns({"v"}).schema.names == ["v"]


def test_no_task_computes_it_for_itself(scan: Scan) -> None:
    """A replicated build side would call functions once for each task."""

    def has_replica(plan: PhysicalPlan) -> bool:
        return isinstance(plan, ReplicateExec) or any(map(has_replica, plan.children))

    big = Scan("big", memory_source(pa.table({"b": list(range(1000))}, pa.schema([("b", t.LONG)]))))
    for build, replicated in ((scan, True), (calls(scan), False)):
        join = Join(big, build, JoinKind.INNER, (JoinKey(Column("b", t.LONG), A),))
        assert has_replica(plan_query(join, CONFIGS[2])) is replicated


def test_plans_with_functions_travel_but_not_from_strangers(scan: Scan) -> None:
    plan = calls(scan)
    assert from_bytes(to_bytes(plan), LogicalPlan) == plan
    with pytest.raises(SerializationError, match="cannot have a EvalPython"):
        read_request(PlanRequest(Analyzed(plan, ("a", "s", "v"))).ticket)
