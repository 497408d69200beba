"""Windows over more than the memory budget: the answer of memory, from pieces on disk."""

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
from kquery_spark.expr import Call, Column, Expr, Frame, FrameUnit, Literal, Named, SortKey, WindowCall
from kquery_spark.expr.windows import UP_TO_PEERS, UP_TO_ROW, WHOLE_PARTITION
from kquery_spark.physical.operators import TaskContext, WindowExec
from kquery_spark.physical.windows import GroupLimit, StreamedPartition, streamable
from kquery_spark.types import names as t
from tests.physical.harness import assert_same_by, batches_of, execute, open_files, read

TINY = EngineConfig(memory_bytes=60_000, batch_rows=1000)
ROOMY = replace(TINY, memory_bytes=1 << 30)
N = 4000


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    yield tmp_path
    assert list(tmp_path.iterdir()) == []
    assert open_files(tmp_path) == []


def table() -> pa.Table:
    rng = np.random.default_rng(3)
    few = np.where(np.arange(N) % 10 < 6, 3, rng.integers(0, 40, N))  # one value has most of the rows
    return pa.table(
        {
            "id": rng.permutation(N),
            "g": pa.array(few, mask=few == 7),
            "o": pa.array(rng.integers(0, 900, N), pa.int32(), mask=rng.random(N) < 0.05),
            "f": [None if v < -2 else float("nan") if v > 2.5 else v for v in rng.normal(size=N)],
            "d": pa.array(rng.integers(-(10**6), 10**6, N)).cast(pa.decimal128(20, 0)),
            "w": pa.array(rng.integers(-(10**6), 10**6, N)).cast(pa.decimal128(38, 2)),
            "s": [None if v % 11 == 0 else f"name {v}" for v in rng.integers(0, 500, N)],
            "b": rng.random(N) < 0.5,
            "p": [{"x": float(v), "y": "y" * v} for v in rng.integers(0, 9, N)],
        }
    )


T = table()
ID, G, NUM, F, D, W, S, B, PAIR = (
    Column(n, T.schema.field(n).type) for n in ["id", "g", "o", "f", "d", "w", "s", "b", "p"]
)


def rows(low: int | None, high: int | None) -> Frame:
    return Frame(FrameUnit.ROWS, *(None if b is None else Literal(b, t.INT) for b in (low, high)))


def peers(low: int | None, high: int | None) -> Frame:
    return Frame(FrameUnit.RANGE, *(None if b is None else Literal(b, t.INT) for b in (low, high)))


ORDERS = {
    "unique": (SortKey(ID),),
    "some peers": (SortKey(NUM, False), SortKey(B)),
    "many peers": (SortKey(B),),
    "one large peer group": (SortKey(G),),
    "all peers": (),
}
# which row of its peers a row is may differ, so frames in rows need an order without peers
FRAMES = {
    "whole": WHOLE_PARTITION,
    "to row": UP_TO_ROW,
    "from row": rows(0, None),
    "before": rows(None, -3),
    "after": rows(700, None),
    "around": rows(-5, 2),
    "wide": rows(-2000, 10),
    "to peers": UP_TO_PEERS,
    "from peers": peers(0, None),
    "peers": peers(0, 0),
}
FUNCTIONS: list[tuple[str, Expr | None]] = [
    ("count", None), ("count", S), ("sum", NUM), ("sum", D), ("sum", W), ("sum", F), ("avg", D), ("min", F), ("max", S),
    ("stddev_samp", NUM), ("bool_and", B), ("bit_xor", NUM), ("count_if", B), ("min", S), ("max", PAIR),
]  # fmt: skip
BY = [("max_by", S, NUM), ("min_by", S, F), ("max_by", NUM, S), ("min_by", NUM, D), ("max_by", PAIR, B)]
IN_ORDER: list[tuple[str, Expr, bool]] = [
    ("first", S, False), ("last", S, False), ("first_value", NUM, True), ("last_value", NUM, True),
    ("last_ignore_nulls", S, False), ("first_value", S, False), ("first_value", PAIR, False), ("last_value", S, True),
]  # fmt: skip


def check(calls: list[WindowCall], partition: list[Expr], order: tuple[SortKey, ...]) -> None:
    named = tuple(Named(c, f"w{i}") for i, c in enumerate(calls))
    plan = WindowExec(read(T), named, tuple(partition), order)
    want, _ = execute(plan, {"t": T}, ROOMY, rows=500)
    actual, task = execute(plan, {"t": T}, TINY, rows=500)
    assert_same_by(actual, want, ["id"])
    metrics = task.metrics_of(plan)
    assert metrics.extra["spilled_bytes"] > T.nbytes // 2


@pytest.mark.parametrize("partition", [[], [G], [B, G]], ids=["all", "g", "b,g"])
@pytest.mark.parametrize("order", [k for k in ORDERS if k != "all peers"])
def test_ranking(order: str, partition: list[Expr]) -> None:
    calls = [WindowCall.of(f) for f in ("rank", "dense_rank", "percent_rank", "cume_dist")]
    check(calls, partition, ORDERS[order])


@pytest.mark.parametrize("limit", [0, 1, 40, 5000])
@pytest.mark.parametrize("partition", [[], [G], [B, G]], ids=["all", "g", "b,g"])
@pytest.mark.parametrize(
    ("function", "order"),
    # with peers, which of them row_number counts first may differ
    [("row_number", "unique"), *((f, o) for f in ("rank", "dense_rank") for o in ORDERS if o != "all peers")],
)
def test_the_first_rows_of_groups(function: str, order: str, partition: list[Expr], limit: int) -> None:
    """In memory and on disk, a limit leaves the rows that a filter of the ranking would leave."""
    calls = (Named(WindowCall.of("rank"), "other"), Named(WindowCall.of(function), "w"))
    whole = WindowExec(read(T), calls, tuple(partition), ORDERS[order])
    limited = WindowExec(read(T), calls, tuple(partition), ORDERS[order], GroupLimit(function, limit))
    every_row, _ = execute(whole, {"t": T}, ROOMY, rows=500)
    ranks = every_row.column(every_row.num_columns - 1)
    expected = every_row.filter(pc.less_equal(ranks, limit))
    for config in (ROOMY, TINY):
        assert_same_by(execute(limited, {"t": T}, config, rows=500)[0], expected, ["id"])


@pytest.mark.parametrize("partition", [[], [G]], ids=["all", "g"])
def test_numbering_and_neighbors(partition: list[Expr]) -> None:
    calls = [WindowCall.of("row_number")]
    calls += [WindowCall.of("ntile", Literal(n, t.INT)) for n in (1, 7, 100_000)]
    for name in ("lag", "lead"):
        for by in (0, 1, -3, 900, 100_000):
            calls.append(WindowCall.of(name, S, Literal(by, t.INT)))
        calls.append(WindowCall.of(name, NUM, Literal(2, t.INT), Call.of("add", NUM, Literal(1, t.INT))))
        calls.append(WindowCall.of(name, D))
    check(calls, partition, ORDERS["unique"])


@pytest.mark.parametrize("partition", [[], [G]], ids=["all", "g"])
@pytest.mark.parametrize("frame", list(FRAMES))
def test_aggregates_over_frames(frame: str, partition: list[Expr]) -> None:
    calls = [WindowCall.of(f, *([] if a is None else [a]), frame=FRAMES[frame]) for f, a in FUNCTIONS]
    calls += [WindowCall.of(f, a, frame=FRAMES[frame], ignore_nulls=i) for f, a, i in IN_ORDER]
    calls += [WindowCall.of(f, a, by, frame=FRAMES[frame]) for f, a, by in BY]
    assert all(map(streamable, calls))
    check(calls, partition, ORDERS["unique"])


@pytest.mark.parametrize("partition", [[], [G]], ids=["all", "g"])
@pytest.mark.parametrize("order", list(ORDERS))
def test_frames_of_peers(order: str, partition: list[Expr]) -> None:
    frames = [FRAMES[f] for f in ("whole", "to peers", "from peers", "peers")]
    calls = [WindowCall.of(f, *([] if a is None else [a]), frame=fr) for f, a in FUNCTIONS for fr in frames]
    check(calls, partition, ORDERS[order])


@pytest.mark.parametrize("partition", [[], [G]], ids=["all", "g"])
def test_frames_that_need_the_whole_partition_have_it(partition: list[Expr]) -> None:
    near = Frame(FrameUnit.RANGE, Literal(-2, t.LONG), Literal(3, t.LONG))
    calls = [
        WindowCall.of("sum", NUM, frame=near),
        WindowCall.of("lag", S, Literal(2, t.INT), ignore_nulls=True),
        WindowCall.of("nth_value", S, Literal(3, t.INT), frame=UP_TO_ROW),
        WindowCall.of("last_value", S, frame=UP_TO_ROW, condition=B),
    ]
    assert not any(map(streamable, calls))
    check(calls, partition, ORDERS["unique"])


def test_a_sum_too_large_is_an_error_and_leaves_no_file(scratch: Path) -> None:
    whole = WindowCall.of("sum", Call.of("multiply", ID, Literal(10**13, t.LONG)), frame=UP_TO_ROW)
    plan = WindowExec(read(T), (Named(whole, "w"),), (), ORDERS["unique"])
    task = TaskContext(config=TINY, inputs={"t": lambda: iter(batches_of(T, 500))})
    seen = 0
    with pytest.raises(ExecutionError, match="ARITHMETIC_OVERFLOW"):
        for batch in plan.run(task):
            seen += batch.num_rows
            assert open_files(scratch)
    assert seen, "the first rows do not wait for the last ones"
    assert open_files(scratch) == []


@pytest.mark.parametrize("partition", [[], [G]], ids=["all", "g"])
def test_a_failing_input_and_an_early_end_leave_no_file(partition: list[Expr], scratch: Path) -> None:
    calls = (Named(WindowCall.of("sum", D, frame=UP_TO_ROW), "w"),)
    plan = WindowExec(read(T), calls, tuple(partition), ORDERS["unique"])

    def failing() -> Iterator:
        yield from batches_of(T, 500)
        assert open_files(scratch), "nothing was spilled"
        raise RuntimeError("the disk is gone")

    with pytest.raises(RuntimeError, match="disk is gone"):
        list(plan.run(TaskContext(config=TINY, inputs={"t": failing})))
    assert open_files(scratch) == []
    running = plan.run(TaskContext(config=TINY, inputs={"t": lambda: iter(batches_of(T, 500))}))
    next(running)
    assert open_files(scratch)
    running.close()
    assert open_files(scratch) == []


def test_what_is_held_does_not_grow_with_the_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    inner = StreamedPartition._computed

    def watched(self: StreamedPartition, number: int, first: int, batches: list) -> object:
        held.append(sum(b.nbytes for b in batches))
        return inner(self, number, first, batches)

    monkeypatch.setattr(StreamedPartition, "_computed", watched)
    calls = (Named(WindowCall.of("lag", S), "a"), Named(WindowCall.of("sum", D, frame=UP_TO_ROW), "b"))
    plan = WindowExec(read(T), calls, (), ORDERS["unique"])
    execute(plan, {"t": T}, TINY, rows=500)
    assert len(held) > 10 and max(held) < TINY.memory_bytes
