from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.errors import PlanError
from kquery_spark.expr import Column, Literal, Named
from kquery_spark.physical.operators import FilterExec, LimitExec, ProjectionExec, UnionExec
from kquery_spark.physical.operators.base import Metrics
from kquery_spark.physical.operators.filter import keep
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Vector
from tests.physical.harness import batches_of, call, execute, lit, read

EMPLOYEES = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "first_name": ["Bill", "Gregg", "John", "Von"],
        "state": ["CA", "CO", "CO", None],
        "salary": pa.array([12000, 10000, 11500, 11500], pa.int32()),
    }
)


def a_batch(n: int) -> Batch:
    return batches_of(pa.table({"x": np.arange(n), "s": [str(i) for i in range(n)]}))[0]


def test_a_mask_of_all_gives_the_batch_itself_and_one_of_none_gives_no_row() -> None:
    batch = a_batch(100)
    assert keep(batch, Vector(t.BOOL, pa.array([True] * 100))) is batch
    assert keep(batch, Vector(t.BOOL, pa.array([False] * 100))).num_rows == 0
    assert keep(batch, Vector(t.BOOL, pa.array([None] * 100, t.BOOL))).num_rows == 0


@pytest.mark.parametrize("every", [2, 50])  # by mask, and by index because few rows remain
def test_few_and_many_rows_are_kept_alike(every: int) -> None:
    batch = a_batch(1000)
    mask = pa.array([None if i % 7 == 0 else i % every == 0 for i in range(1000)])
    want = [i for i in range(1000) if i % 7 and i % every == 0]
    kept = keep(batch, Vector(t.BOOL, mask))
    assert kept.columns[0].to_pylist() == want
    assert kept.columns[1].to_pylist() == [str(i) for i in want]


def test_each_selectivity_has_its_way_and_metrics_count_them() -> None:
    batch, metrics = a_batch(100), Metrics()
    ways = {
        "all": [True] * 100,
        "none": [False] * 99 + [None],
        "slice": [False] * 40 + [True] * 50 + [None] * 10,
        "indices": [i % 9 == 0 for i in range(100)],
        "mask": [i % 3 == 0 for i in range(100)],
    }
    for number, (way, mask) in enumerate(ways.items(), 1):
        kept = keep(batch, Vector(t.BOOL, pa.array(mask)), metrics)
        assert kept.columns[0].to_pylist() == [i for i, m in enumerate(mask) if m]
        assert metrics.extra[f"filter_{way}"] == 1 and sum(metrics.extra.values()) == number
    sliced = keep(batch, Vector(t.BOOL, pa.array(ways["slice"])))
    assert sliced.columns[0].buffers()[1].address == batch.columns[0].buffers()[1].address
    few = keep(batch, Vector(t.BOOL, pa.array([i == 3 for i in range(100)])))  # holds on to nothing
    assert few.columns[0].buffers()[1].address != batch.columns[0].buffers()[1].address


def test_a_literal_condition_keeps_all_or_nothing() -> None:
    batch = a_batch(5)
    assert keep(batch, Vector(t.BOOL, pa.scalar(True))) is batch
    assert keep(batch, Vector(t.BOOL, pa.scalar(None, t.BOOL))).num_rows == 0


def test_a_null_predicate_drops_the_row_and_metrics_count_what_remains() -> None:
    plan = FilterExec(read(EMPLOYEES), call("eq", Column("state", t.STRING), lit("CO", t.STRING)))
    result, task = execute(plan, {"t": EMPLOYEES}, rows=1)
    assert result["id"].to_pylist() == [2, 3]
    metrics = task.metrics_of(plan)
    assert (metrics.rows, metrics.batches) == (2, 2)


def test_a_bare_column_passes_without_a_copy() -> None:
    plan = ProjectionExec(
        read(EMPLOYEES), (Named(Column("salary", t.INT), "pay"), Named(Literal(1, t.INT), "one"))
    )
    batch = batches_of(EMPLOYEES)[0]
    from kquery_spark.physical.operators import TaskContext

    out = next(plan.run(TaskContext(inputs={"t": lambda: iter([batch])})))
    assert out.columns[0] is batch.columns[3]
    assert out.columns[1].to_pylist() == [1] * 4
    assert out.schema.names == ["pay", "one"]


def test_limit_gives_the_first_rows_and_stops_pulling() -> None:
    pulled = []

    def source():
        for b in batches_of(EMPLOYEES, 1):
            pulled.append(b)
            yield b

    from kquery_spark.physical.operators import TaskContext

    plan = LimitExec(read(EMPLOYEES), 2)
    names = [b.columns[1].to_pylist() for b in plan.run(TaskContext(inputs={"t": source}))]
    assert names == [["Bill"], ["Gregg"]]
    assert len(pulled) == 2


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("count,offset", [(2, 0), (1, 2), (None, 3), (0, 0), (10, 1), (2, 9), (3, 1)])
def test_limit_and_offset_cut_across_batches(rows: int, count: int | None, offset: int) -> None:
    result, _ = execute(LimitExec(read(EMPLOYEES), count, offset), {"t": EMPLOYEES}, rows=rows)
    end = None if count is None else offset + count
    assert result["id"].to_pylist() == [1, 2, 3, 4][offset:end]


def test_union_takes_columns_by_position_under_the_first_names() -> None:
    left, right = pa.table({"a": [1, 2]}), pa.table({"b": [2, None]}, pa.schema([("b", pa.int64())]))
    plan = UnionExec((read(left, "l"), read(right, "r")), left.schema)
    result, _ = execute(plan, {"l": left, "r": right})
    assert result.to_pydict() == {"a": [1, 2, 2, None]}


@pytest.mark.parametrize("terms", [["a"] * 240, [*["a"] * 75, "1", *["a"] * 75], [*["a"] * 239, "5"]])
def test_long_chains_of_operators(terms: list[str]) -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"a": [1, None, 3]}))
    constants = sum(int(term) for term in terms if term != "a")
    expected = [value and value * terms.count("a") + constants for value in (1, None, 3)]
    assert context.sql(f"SELECT {' + '.join(terms)} AS x FROM t").to_arrow()["x"].to_pylist() == expected


def test_an_expression_deeper_than_pythons_stack_is_a_clear_error() -> None:
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"a": [1]}))
    deep = kq.col("a")
    for _ in range(1000):
        deep = deep + kq.lit(1)
    with pytest.raises(PlanError, match="nested too deeply"):
        context.table("t").select(deep)
