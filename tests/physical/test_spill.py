"""A tiny memory budget changes where state is held, never the result, and leaves no file behind."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import ExecutionError
from kquery_spark.expr import AggregateCall, Call, Column, Expr, Literal, Named, SortKey, WindowCall
from kquery_spark.expr.windows import UP_TO_ROW
from kquery_spark.logical import Join, JoinKind
from kquery_spark.logical.join import JoinKey
from kquery_spark.physical.operators import (
    AggregateExec,
    BuildSide,
    JoinExec,
    Phase,
    PhysicalPlan,
    ReadExec,
    SortExec,
    TaskContext,
    WindowExec,
)
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from tests.physical.harness import assert_same_by, batches_of, execute, open_files, read, scan

TINY = EngineConfig(memory_bytes=40_000, batch_rows=1000)
ROOMY = replace(TINY, memory_bytes=1 << 30)
N = 20_000


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    yield tmp_path
    assert list(tmp_path.iterdir()) == []
    assert open_files(tmp_path) == []


def table(seed: int = 1, prefix: str = "") -> pa.Table:
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 6000, N)
    return pa.table(
        {
            f"{prefix}k": pa.array(keys, mask=keys % 97 == 0),
            f"{prefix}s": [None if k % 31 == 0 else f"name {k % 900}" for k in keys],
            f"{prefix}f": rng.normal(size=N),
            f"{prefix}d": pa.array(rng.integers(-(10**6), 10**6, N)).cast(pa.decimal128(20, 0)),
            f"{prefix}i": np.arange(N),
        }
    )


T = table()
K, S, F, D, ROW = (Column(n, T.schema.field(n).type) for n in "ksfdi")


def plans() -> dict[str, PhysicalPlan]:
    child = read(T)
    group = (Named(K, "k"), Named(S, "s"))
    calls = (
        Named(AggregateCall.of("sum", D), "a"),
        Named(AggregateCall.of("count"), "b"),
        Named(AggregateCall.of("min", S), "c"),
    )
    distinct = (*calls, Named(AggregateCall.of("count", F, distinct=True), "e"))
    call = Named(WindowCall.of("sum", D, frame=UP_TO_ROW), "w")
    return {
        "sort": SortExec(child, (SortKey(S, False, False), SortKey(K), SortKey(ROW))),
        "aggregate": AggregateExec(child, group, calls, Phase.SINGLE),
        "distinct": AggregateExec(child, group, distinct, Phase.SINGLE),
        "window": WindowExec(child, (call,), (K,), (SortKey(ROW),)),
    }


@pytest.mark.parametrize("name", list(plans()))
def test_spilling_gives_the_same_rows(name: str) -> None:
    plan = plans()[name]
    want, _ = execute(plan, {"t": T}, ROOMY, rows=700)
    actual, task = execute(plan, {"t": T}, TINY, rows=700)
    if name == "sort":
        assert actual.equals(want)
    assert_same_by(actual, want, ["k", "s"] if name in ("aggregate", "distinct") else ["i"])
    metrics = task.metrics_of(plan)
    assert metrics.extra["spilled_bytes"] > 0 and metrics.extra["spill_files"] > 1
    assert metrics.rows == want.num_rows


@pytest.mark.parametrize("build", list(BuildSide))
@pytest.mark.parametrize("kind", [k for k in JoinKind if k is not JoinKind.EXISTENCE])
def test_joins_spill_both_sides(kind: JoinKind, build: BuildSide) -> None:
    left, right = T.slice(0, 6000), table(2, "r").slice(0, 5000)
    keys = (JoinKey(K, Column("rk", t.LONG)), JoinKey(S, Column("rs", t.STRING), null_safe=True))
    condition = Call.of("lt", F, Column("rf", t.DOUBLE))
    schema = Join(scan(left), scan(right), kind, keys, condition).schema
    plan = JoinExec(read(left, "l"), read(right, "r"), kind, keys, condition, build, schema)
    tables = {"l": left, "r": right}
    want, _ = execute(plan, tables, ROOMY, rows=700)
    actual, task = execute(plan, tables, TINY, rows=700)
    assert_same_by(actual, want, [c for c in want.column_names if c in ("i", "ri")])
    assert task.metrics_of(plan).extra["spilled_bytes"] > 0


# several blocks of probe rows, a dozen chunks of build rows, and their pairs in several slices
NARROW = replace(TINY, memory_bytes=10_000)
NESTED = [None, Call.of("lt", F, Column("rf", t.DOUBLE)), Call.of("eq", K, Column("rk", t.LONG))]
NOTHING = Call.of("lt", ROW, Literal(-1, t.LONG))


def nested(kind: JoinKind, build: BuildSide, condition: Expr | None) -> tuple[JoinExec, dict[str, pa.Table]]:
    left, right = T.slice(0, 380), table(2, "r").slice(0, 330)
    schema = Join(scan(left), scan(right), kind, (), condition).schema
    plan = JoinExec(read(left, "l"), read(right, "r"), kind, (), condition, build, schema)
    return plan, {"l": left, "r": right}


@pytest.mark.parametrize("condition", [*NESTED, NOTHING], ids=["cross", "less", "equal", "nothing"])
@pytest.mark.parametrize("build", list(BuildSide))
@pytest.mark.parametrize("kind", list(JoinKind))
def test_nested_loops_spill_the_build_side(kind: JoinKind, build: BuildSide, condition: Expr | None) -> None:
    if kind is JoinKind.EXISTENCE and build is BuildSide.LEFT:
        return  # the planner never asks for it
    plan, tables = nested(kind, build, condition)
    want, _ = execute(plan, tables, ROOMY, rows=180)
    actual, task = execute(plan, tables, NARROW, rows=180)
    assert_same_by(actual, want, [c for c in want.column_names if c in ("i", "ri")])
    assert task.metrics_of(plan).extra["spilled_bytes"] > 0


def test_no_file_is_left_when_a_nested_loop_fails_or_the_reader_stops(scratch: Path) -> None:
    plan, tables = nested(JoinKind.FULL, BuildSide.RIGHT, NESTED[1])

    def failing() -> Iterator:
        yield from batches_of(tables["l"], 100)
        assert open_files(scratch), "nothing was spilled"
        raise RuntimeError("the disk is gone")

    inputs = {n: (lambda t=t: iter(batches_of(t, 100))) for n, t in tables.items()}
    with pytest.raises(RuntimeError, match="disk is gone"):
        list(plan.run(TaskContext(config=NARROW, inputs={**inputs, "l": failing})))
    assert open_files(scratch) == []
    running = plan.run(TaskContext(config=NARROW, inputs=inputs))
    next(running)
    assert open_files(scratch)
    running.close()
    assert open_files(scratch) == []
    # the condition raises for some pair
    share = Call.of("lt", Call.of("div", ROW, Column("ri", t.LONG)), K)
    raising, _ = nested(JoinKind.INNER, BuildSide.RIGHT, share)
    with pytest.raises(ExecutionError, match="DIVIDE_BY_ZERO"):
        list(raising.run(TaskContext(config=NARROW, inputs=inputs)))


@pytest.mark.parametrize("condition", [None, Call.of("lt", ROW, Literal(3, t.LONG))], ids=["cross", "less"])
@pytest.mark.parametrize("build", list(BuildSide))
@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL, JoinKind.SEMI, JoinKind.ANTI])
def test_nested_loops_spill_rows_without_columns(
    kind: JoinKind, build: BuildSide, condition: Expr | None
) -> None:
    """One side or both have no columns; the side without columns is 5 rows or 5000, and it is the left or the right one."""
    nothing, one = pa.schema([]), T.select(["i"]).schema
    counts = {"few": [5], "many": [1000, 3000, 1000]}
    inputs = {
        "i": lambda: iter(batches_of(T.select(["i"]).slice(0, 40), 15)),
        **{name: (lambda n=n: (Batch(nothing, (), k) for k in n)) for name, n in counts.items()},
    }
    sides = [ReadExec("i", one), ReadExec("many", nothing), ReadExec("few", nothing)]
    for left, right in [(0, 1), (1, 0), (2, 1), (1, 2)]:
        if condition is not None and 0 not in (left, right):
            continue
        left_side, right_side = sides[left], sides[right]
        both = kind not in (JoinKind.SEMI, JoinKind.ANTI)
        output = pa.schema([*left_side.schema, *right_side.schema]) if both else left_side.schema
        plan = JoinExec(left_side, right_side, kind, (), condition, build, output)
        done = []
        for config in (ROOMY, NARROW):
            task = TaskContext(config=config, inputs=inputs)
            rows = list(plan.run(task))
            values = sorted((v for b in rows for c in b.columns for v in c.to_pylist()), key=str)
            done.append((sum(b.num_rows for b in rows), values))
        assert done[0] == done[1]


@pytest.mark.parametrize("null", [False, True])
def test_not_in_spills(null: bool) -> None:
    left, right = T.slice(0, 6000), table(2, "r").slice(0, 5000)
    if not null:
        right = right.filter(pc.is_valid(right["rk"]))
    keys = (JoinKey(K, Column("rk", t.LONG)),)
    plan = JoinExec(
        read(left, "l"),
        read(right, "r"),
        JoinKind.ANTI,
        keys,
        None,
        BuildSide.RIGHT,
        left.schema,
        null_aware=True,
    )
    want, _ = execute(plan, {"l": left, "r": right}, ROOMY, rows=700)
    actual, task = execute(plan, {"l": left, "r": right}, TINY, rows=700)
    assert_same_by(actual, want, ["i"])
    assert (actual.num_rows == 0) is null
    assert task.metrics_of(plan).extra["spilled_bytes"] > 0


@pytest.mark.parametrize("name", list(plans()))
def test_no_file_is_left_when_the_input_fails_or_the_reader_stops(name: str, scratch: Path) -> None:
    plan = plans()[name]

    def failing() -> Iterator:
        yield from batches_of(T, 700)
        assert open_files(scratch), "nothing was spilled"
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="disk is gone"):
        list(plan.run(TaskContext(config=TINY, inputs={"t": failing})))
    assert open_files(scratch) == []
    running = plan.run(TaskContext(config=TINY, inputs={"t": lambda: iter(batches_of(T, 700))}))
    next(running)
    assert open_files(scratch)
    running.close()
    assert open_files(scratch) == []
