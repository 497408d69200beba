"""A tiny memory budget changes where state is held, never the result, and leaves no file behind."""

from __future__ import annotations

import gc
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
    WindowGroupLimitExec,
)
from kquery_spark.physical.windows import GroupLimit
from kquery_spark.types import batch as batch_module
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


def self_join(table: pa.Table) -> JoinExec:
    """A join of a table with itself by its column k."""
    child = read(table)
    keys = (JoinKey(K, K),)
    schema = pa.schema([*child.schema, *child.schema])
    return JoinExec(child, child, JoinKind.INNER, keys, None, BuildSide.RIGHT, schema)


@pytest.mark.parametrize("name", [*plans(), "join"])
def test_strings_spill_before_they_exceed_one_array(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators spill strings even within the budget, because a column of a batch has at most 2 GiB of them."""
    monkeypatch.setattr(batch_module, "_MAX_BUFFERED_BYTES", TINY.memory_bytes)
    plan = plans()[name] if name in plans() else self_join(T)
    _, task = execute(plan, {"t": T}, ROOMY, rows=700)
    assert task.metrics_of(plan).extra["spilled_bytes"] > 0


@pytest.mark.parametrize("name", ["sort", "join"])
def test_rows_without_strings_use_the_whole_budget(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "_MAX_BUFFERED_BYTES", TINY.memory_bytes)
    numbers = T.select(["k", "f", "i"])
    plan = SortExec(read(numbers), (SortKey(ROW),)) if name == "sort" else self_join(numbers)
    _, task = execute(plan, {"t": numbers}, ROOMY, rows=700)
    assert "spilled_bytes" not in task.metrics_of(plan).extra


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
    """One side or both sides have no columns. A side without columns has 5 or 5000 rows."""
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
        # Only 5000 rows exceed the small budget.
        spills = (left_side if build is BuildSide.LEFT else right_side).input_id == "many"
        assert ("spill_files" in task.metrics_of(plan).extra) is spills


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


WIDE = pa.table(
    {
        "k": pa.array(np.arange(6000) % 1500),
        "v": pa.array(np.random.default_rng(5).integers(0, 900, 6000)),
        "s": [f"{i:0200}" for i in range(6000)],
    }
)


def held_bytes(plan: PhysicalPlan, inputs: pa.Table, config: EngineConfig) -> tuple[list[Batch], int]:
    """Return the output, and the most bytes in arrays that the operator held, measured after each input and output batch."""
    most = 0
    output: list[Batch] = []
    gc.collect()  # Arrow counts all arrays of the process, also those in garbage of other tests
    before = pa.total_allocated_bytes()

    def measure() -> None:
        nonlocal most
        most = max(most, pa.total_allocated_bytes() - before - sum(batch.nbytes for batch in output))

    def measured() -> Iterator[Batch]:
        for batch in batches_of(inputs, 100):
            # a copy, which only the operator holds
            yield batch.take(pa.array(range(batch.num_rows)))
            measure()

    for batch in plan.run(TaskContext(config=config, inputs={"t": measured})):
        measure()
        output.append(batch)
    return output, most


@pytest.mark.parametrize("limit", [10, 1000, 3000])
def test_the_first_rows_of_wide_rows_stay_within_the_budget(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kquery_spark.physical.sorting.external_sort._MIN_PIECE_ROWS", 8)
    config = EngineConfig(memory_bytes=200_000, batch_rows=100)
    keys = (SortKey(Column("v", t.LONG)), SortKey(Column("k", t.LONG), False))
    want, _ = execute(SortExec(read(WIDE), keys, limit), {"t": WIDE}, rows=100)
    batches, most = held_bytes(SortExec(read(WIDE), keys, limit), WIDE, config)
    assert pa.Table.from_batches([b.to_arrow() for b in batches]).equals(want)
    assert most < 1.2 * config.memory_bytes


@pytest.mark.parametrize("is_partial", [False, True])
@pytest.mark.parametrize("keys", [["k"], ["one"]])
def test_the_first_rows_of_groups_stay_within_the_budget(keys: list[str], is_partial: bool) -> None:
    config = EngineConfig(memory_bytes=200_000, batch_rows=100)
    rows = WIDE.append_column("one", pa.array([1] * 6000))
    partition = tuple(Column(name, t.LONG) for name in keys)
    order = (SortKey(Column("v", t.LONG)), SortKey(Column("s", t.STRING)))
    plan = WindowGroupLimitExec(read(rows), partition, order, GroupLimit("row_number", 1), is_partial)
    want, _ = execute(replace(plan, is_partial=False), {"t": rows}, rows=100)
    batches, most = held_bytes(plan, rows, config)
    assert most < 1.2 * config.memory_bytes
    assert (len(batches) > 10) is (keys == ["k"])
    actual = pa.Table.from_batches([b.to_arrow() for b in batches])
    if is_partial:
        actual, _ = execute(replace(plan, is_partial=False), {"t": actual}, rows=100)
    assert_same_by(actual, want, ["s"])


def test_rows_that_all_tie_for_the_first_rank_stay_within_the_budget() -> None:
    """Without a partition, rows that do not fit into memory pass on unpruned. A Filter above the Window drops them."""
    config = EngineConfig(memory_bytes=200_000, batch_rows=100)
    rows = WIDE.append_column("one", pa.array([1] * 6000))
    plan = WindowGroupLimitExec(read(rows), (), (SortKey(Column("one", t.LONG)),), GroupLimit("rank", 1))
    batches, most = held_bytes(plan, rows, config)
    assert most < 1.2 * config.memory_bytes
    assert pa.Table.from_batches([b.to_arrow() for b in batches]).equals(rows)


@pytest.mark.parametrize("name", ["sort", "group limit"])
def test_a_large_dictionary_does_not_make_the_first_rows_spill(name: str) -> None:
    words = pa.DictionaryArray.from_arrays(np.arange(6000) % 700, [f"{i:0200}" for i in range(700)])
    rows = WIDE.select(["k", "v"]).append_column("s", words.cast(t.STRING))
    columns = pa.array(np.arange(6000) % 10), rows["v"].combine_chunks(), words
    batches = [Batch(rows.schema, columns, 6000).slice(start, 100) for start in range(0, 6000, 100)]
    key, config = SortKey(Column("v", t.LONG)), EngineConfig(memory_bytes=200_000, batch_rows=100)
    plan = {
        "sort": SortExec(read(rows), (key,), 10),
        "group limit": WindowGroupLimitExec(
            read(rows), (Column("k", t.LONG),), (key,), GroupLimit("row_number", 1)
        ),
    }[name]
    task = TaskContext(config=config, inputs={"t": lambda: iter(batches)})
    assert sum(batch.num_rows for batch in plan.run(task)) == 10
    assert "spilled_bytes" not in task.metrics_of(plan).extra


def test_distinct_values_of_wide_rows_stay_within_the_budget() -> None:
    config = EngineConfig(memory_bytes=200_000, batch_rows=100)
    calls = (
        Named(AggregateCall.of("sum", Column("v", t.LONG), distinct=True), "a"),
        Named(AggregateCall.of("max", Column("s", t.STRING)), "b"),
    )
    plan = AggregateExec(read(WIDE), (Named(Column("k", t.LONG), "k"),), calls, Phase.SINGLE)
    batches, most = held_bytes(plan, WIDE, config)
    assert len(batches) > 10
    assert most < 1.2 * config.memory_bytes


@pytest.mark.parametrize("name", ["collect_list", "percentile"])
def test_large_partial_states_of_a_few_groups_are_sent_on(name: str) -> None:
    config = EngineConfig(memory_bytes=200_000, batch_rows=100)
    rows = pa.table({"k": np.arange(1 << 22) % 3, "v": np.arange(1 << 22)})
    value, share = Column("v", t.LONG), Literal(0.5, t.DOUBLE)
    call = AggregateCall.of(name, value, *([share] if name == "percentile" else []))
    plan = AggregateExec(read(rows), (Named(Column("k", t.LONG), "k"),), (Named(call, "a"),), Phase.PARTIAL)
    batches, most = held_bytes(plan, rows, config)
    assert len(batches) > 2
    # a few copies of the largest batch that is grouped at a time: 256 Ki rows of 16 bytes, of 64 MB in total
    assert most < 5 * 16 * (1 << 18)
