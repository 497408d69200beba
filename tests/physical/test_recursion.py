"""Recursions: rounds over the rows of the round before, their limits, and rows that pass the memory budget."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.logical import (
    Filter,
    Input,
    Join,
    JoinKind,
    LastRound,
    Limit,
    LogicalPlan,
    Projection,
    Recursion,
    RecursionLimits,
)
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.recursion import unbound_rounds
from kquery_spark.types import names as t
from tests.physical.harness import CONFIGS, call, lit, named, run, scan

EDGES = pa.table(
    {
        "parent": pa.array([1, 1, 2, 2, 3, 7, 7, None], pa.int64()),
        "child": pa.array([2, 3, 4, 5, 6, 8, 9, 1], pa.int64()),
    }
)


def first(*values: int) -> LogicalPlan:
    return scan(pa.table({"n": pa.array(values, pa.int64())}), "first")


def last(key: str = "r") -> LastRound:
    return LastRound(key, pa.schema([pa.field("m", pa.int64())]))


def counting(up_to: int, limits: RecursionLimits, start: LogicalPlan | None = None) -> Recursion:
    """Numbers up to one, each round the one after those of the last."""
    rows = last()
    below = Filter(rows, call("lt", rows.column("m"), lit(up_to, t.LONG)))
    step = Projection(below, (named(call("add", below.column("m"), lit(1, t.LONG)), "next"),))
    return Recursion(start or first(1), step, "r", limits)


def tree(limits: RecursionLimits, *roots: int) -> Recursion:
    """The nodes of a tree from its roots down, whose step joins a table with the last round."""
    edges, rows = scan(EDGES, "edges"), last()
    joined = Join(edges, rows, JoinKind.INNER, (JoinKey(edges.column("parent"), rows.column("m")),))
    return Recursion(first(*roots), Projection(joined, (named(joined.column("child"), "x"),)), "r", limits)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_rounds_follow_each_other_until_one_is_empty(config: EngineConfig) -> None:
    numbers = run(counting(5, RecursionLimits()), config)
    assert numbers.column_names == ["n"]
    assert numbers["n"].to_pylist() == [1, 2, 3, 4, 5]
    assert sorted(run(tree(RecursionLimits(), 1), config)["n"].to_pylist()) == [1, 2, 3, 4, 5, 6]
    assert run(tree(RecursionLimits()), config).num_rows == 0


@pytest.mark.parametrize("config", CONFIGS[:2], ids=str)
def test_each_round_is_filtered_by_its_own_rows(config: EngineConfig) -> None:
    """Filters that a join gives its other side's scan are those of one round."""
    assert sorted(run(tree(RecursionLimits(), 7, 3, 1), config)["n"].to_pylist()) == [
        1,
        2,
        3,
        3,
        4,
        5,
        6,
        6,
        7,
        8,
        9,
    ]


def test_two_reads_of_one_recursion_are_two_recursions() -> None:
    left = tree(RecursionLimits(), 1)
    right = Projection(replace(left, anchor=first(2)), (named(left.column("n"), "k"),))
    joined = Join(left, right, JoinKind.INNER, (JoinKey(left.column("n"), right.column("k")),))
    assert sorted(run(joined, CONFIGS[1])["n"].to_pylist()) == [2, 4, 5]


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        (RecursionLimits(max_rounds=4), "RECURSION_LEVEL_LIMIT_EXCEEDED"),
        (RecursionLimits(max_rows=5), "RECURSION_ROW_LIMIT_EXCEEDED"),
    ],
)
def test_too_much_is_an_error_also_under_a_limit(limits: RecursionLimits, error: str) -> None:
    for plan in (counting(5, limits), Limit(counting(5, limits), 1)):
        with pytest.raises(ExecutionError) as caught:
            run(plan)
        assert caught.value.error_class == error


def test_as_much_as_allowed_is_none() -> None:
    limits = RecursionLimits(max_rounds=5, max_rows=6)
    assert run(counting(5, limits)).num_rows == 5


def test_enough_rows_end_what_has_no_end() -> None:
    endless = counting(1 << 60, RecursionLimits(max_rounds=100, enough_rows=7), first(0, 10, 20))
    assert run(endless)["n"].to_pylist() == [0, 10, 20, 1, 11, 21, 2]


def test_rows_that_pass_the_budget_wait_on_disk() -> None:
    values = pa.table(
        {
            "n": pa.array([f"{'x' * 500}{i}" if i % 3 else None for i in range(400)]),
            "d": pa.array([Decimal(i) for i in range(400)], pa.decimal128(12, 2)),
        }
    )
    rows = LastRound("r", values.schema)
    step = Projection(rows, (named(rows.column("n"), "x"), named(rows.column("d"), "y")))
    endless = Recursion(scan(values, "values", 50), step, "r", RecursionLimits(enough_rows=2000))
    found = run(endless, replace(CONFIGS[0], memory_bytes=64 << 10))
    assert found.num_rows == 2000
    for start in range(0, 2000, 400):
        assert found.slice(start, 400).to_pydict() == values.to_pydict()


def test_a_recursion_of_rows_that_come_once_is_declined() -> None:
    with pytest.raises(Unsupported, match="only read files"):
        run(counting(5, RecursionLimits(), Input("rows", pa.schema([pa.field("n", pa.int64())]))))


def test_a_step_of_other_types_is_no_plan() -> None:
    with pytest.raises(PlanError, match="other column types"):
        Recursion(scan(pa.table({"n": ["a"]})), last(), "r")


def test_rounds_without_their_recursion_are_found() -> None:
    assert unbound_rounds(counting(5, RecursionLimits())) == set()
    assert unbound_rounds(counting(5, RecursionLimits()).step) == {"r"}
    assert unbound_rounds(Recursion(first(1), last("other"), "r")) == {"other"}
