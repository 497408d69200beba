"""CogroupPythonExec and WindowPythonExec with evaluations of this process: pairs of groups, bounds of frames, lowering."""

from __future__ import annotations

from collections.abc import Iterator

import cloudpickle
import pyarrow as pa
import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import PlanError
from kquery_spark.expr import Call, Column, Expr, Frame, FrameUnit, Literal, Named, SortKey
from kquery_spark.expr.windows import UP_TO_PEERS
from kquery_spark.logical import CogroupPython, LogicalPlan, Projection, Scan, WindowPython, format_plan
from kquery_spark.logical.cogroup_python import CogroupSide
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.optimizer import optimize
from kquery_spark.planner import plan_query
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.sources.memory import memory_source
from kquery_spark.stages import build_stages
from kquery_spark.types import names as t
from tests.physical.harness import CONFIGS

K, A = Column("k", t.STRING), Column("a", t.LONG)
OTHER_K, B = Column("k2", t.STRING), Column("b", t.LONG)
SEEN = pa.schema([("left", t.STRING), ("right", t.STRING)])
Pair = tuple[list[pa.RecordBatch], list[pa.RecordBatch]]
ROWS = [("x", 1), ("y", 2), (None, 3), ("x", 4), (None, 5), ("x", 6)]
OTHERS = [("y", 10), ("z", 20), (None, 30), ("x", 40), ("y", 50)]


def rows(name: str, pairs: list[tuple[str | None, int]], columns: tuple[str, str]) -> Scan:
    keys, values = zip(*pairs, strict=True)
    table = pa.table([pa.array(keys, t.STRING), pa.array(values, t.LONG)], names=list(columns))
    return Scan(name, memory_source(table))


def describe_pairs(pairs: Iterator[Pair]) -> Iterator[pa.RecordBatch]:
    for pair in pairs:
        strings = []
        for batches in pair:
            assert batches and all(batch.num_rows <= 2 for batch in batches)
            values = [value for batch in batches for value in batch.column(0).to_pylist()]
            strings.append(str(sorted(values)))
        yield pa.RecordBatch.from_arrays([[text] for text in strings], names=["_0", "_1"])


def cogroup(left_scan: LogicalPlan, right: LogicalPlan, keyed: bool = True) -> CogroupPython:
    sides = [CogroupSide((k,) if keyed else (), (v,)) for k, v in ((K, A), (OTHER_K, B))]
    return CogroupPython(
        left_scan, right, *sides, PythonCalls(SEEN, ("f(#a, #b)",), cloudpickle.dumps(describe_pairs), 2)
    )


def executed(plan: LogicalPlan, config: EngineConfig) -> list[tuple[object, ...]]:
    graph = build_stages(plan_query(optimize(plan), config), config)
    found = LocalExecutor(graph, config).table().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


@pytest.fixture
def left_scan() -> Scan:
    return rows("l", ROWS, ("k", "a"))


@pytest.fixture
def right() -> Scan:
    return rows("r", OTHERS, ("k2", "b"))


@pytest.mark.parametrize("config", CONFIGS)
def test_pairs_of_groups(left_scan: Scan, right: Scan, config: EngineConfig) -> None:
    expected = [("[1, 4, 6]", "[40]"), ("[2]", "[10, 50]"), ("[3, 5]", "[30]"), ("[]", "[20]")]
    assert executed(cogroup(left_scan, right), config) == expected
    whole = [("[1, 2, 3, 4, 5, 6]", "[10, 20, 30, 40, 50]")]
    assert executed(cogroup(left_scan, right, keyed=False), config) == whole


def test_rows_of_both_sides_are_sorted_in_one_task(left_scan: Scan, right: Scan) -> None:
    shown = format_plan(plan_query(optimize(cogroup(left_scan, right)), CONFIGS[1]))
    assert shown.count("ExchangeExec") == 2 and "SortExec" in shown and "UnionExec" in shown
    assert "groupExpr=[#k = #k2], call=f(#a, #b)" in str(cogroup(left_scan, right))


def test_keys_of_a_pair_have_one_type(left_scan: Scan, right: Scan) -> None:
    sides = CogroupSide((K,), (A,)), CogroupSide((B,), (B,))
    with pytest.raises(PlanError, match="compares string with bigint"):
        CogroupPython(left_scan, right, *sides, PythonCalls(SEEN, ("f",), b"code", 2))


def bounds_and_values(partitions: Iterator[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    for partition in partitions:
        table = pa.Table.from_batches(partition)
        *bounds, values = (column.to_pylist() for column in table.columns)
        strings = [str(list(row)) for row in zip(*bounds, values, strict=True)]
        yield pa.RecordBatch.from_arrays([pa.array(strings)], ["_0"])


def window(child: LogicalPlan, order: tuple[SortKey, ...], *frames: Frame) -> WindowPython:
    code = cloudpickle.dumps(bounds_and_values)
    calls = PythonCalls(pa.schema([("w", t.STRING)]), ("f(#a)",), code, 2)
    return WindowPython(child, (K,), order, frames, (A,), calls)


@pytest.mark.parametrize("config", CONFIGS)
def test_bounds_count_from_the_partition_s_first_row(left_scan: Scan, config: EngineConfig) -> None:
    sliding = Frame(FrameUnit.ROWS, Literal(-1, t.INT), Literal(0, t.INT))
    ahead = Frame(FrameUnit.ROWS, Literal(2, t.INT), None)
    found = executed(window(left_scan, (SortKey(A),), sliding, ahead), config)
    assert found == [
        ("x", 1, "[0, 1, 2, 3, 1]"),
        ("x", 4, "[0, 2, 3, 3, 4]"),
        ("x", 6, "[1, 3, 3, 3, 6]"),
        ("y", 2, "[0, 1, 1, 1, 2]"),
        (None, 3, "[0, 1, 2, 2, 3]"),
        (None, 5, "[0, 2, 2, 2, 5]"),
    ]


@pytest.mark.parametrize("config", CONFIGS)
def test_peers_and_whole_partitions(left_scan: Scan, config: EngineConfig) -> None:
    odd: Expr = Call.of("mod", A, Literal(2, t.LONG))
    tied = Projection(left_scan, (Named(K, "k"), Named(odd, "a")))
    found = executed(window(tied, (SortKey(A),), UP_TO_PEERS), config)
    assert [row for row in found if row[0] == "x"] == [("x", 0, "[0, 2, 0]"), ("x", 0, "[0, 2, 0]"), ("x", 1, "[0, 3, 1]")]  # fmt: skip
    assert {row[2] for row in executed(window(left_scan, ()), config)} == {f"[{a}]" for _, a in ROWS}


def test_columns_that_nothing_reads_are_left_out(left_scan: Scan) -> None:
    plan = window(left_scan, (SortKey(A),))
    only = Projection(plan, (Named(Column("w", t.STRING), "w"),))
    narrow = optimize(only)
    assert narrow.schema.names == ["w"]
    assert isinstance(plan.prune_columns({"w"}), WindowPython) and plan.prune_columns({"w"}).schema.names == [
        "w"
    ]
