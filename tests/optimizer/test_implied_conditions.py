"""Conditions that an OR over several inputs implies: which scans they filter, and when none are derived."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.expr import Call
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical import LogicalPlan, Scan, walk_plan
from kquery_spark.optimizer import optimize
from kquery_spark.optimizer.rules import implied_conditions as rule


@pytest.fixture(scope="module")
def context() -> kq.ExecutionContext:
    new_context = kq.ExecutionContext()
    for name in "abc":
        # a is the largest table
        rows = 500 if name == "a" else 50
        columns = {f"{name}k": [i % 7 for i in range(rows)], f"{name}v": [i % 5 or None for i in range(rows)]}
        new_context.register_arrow(name, pa.table(columns))
    return new_context


def optimized(context: kq.ExecutionContext, sql: str) -> LogicalPlan:
    return optimize(context.sql(sql).analyzed.plan)


def filters(plan: LogicalPlan) -> dict[str, list[str]]:
    """Return the filters of each scan by the name of its table, which is the first letter of its columns."""
    scans: Iterator[Scan] = (node for node in walk_plan(plan) if isinstance(node, Scan))
    return {scan.source.schema.names[0][0]: list(map(str, scan.filters)) for scan in scans}


def test_each_input_of_an_inner_join_is_filtered_and_the_condition_stays(context: kq.ExecutionContext):
    plan = optimized(
        context, "SELECT * FROM a, b WHERE ak = bk AND ((av = 1 AND bv = 2) OR (av = 3 AND bv > 3))"
    )
    assert filters(plan) == {"a": ["#av IN (1, 3)"], "b": ["(#bv = 2) OR (#bv > 3)"]}
    ors = [e for node in walk_plan(plan) if not isinstance(node, Scan) for e in node.expressions]
    assert any(isinstance(e, Call) and e.logic is Logic.OR for e in ors)


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("JOIN", {"a": ["#av IN (1, 3)"], "b": ["#bv IN (2, 4)"]}),
        ("LEFT JOIN", {"a": [], "b": ["#bv IN (2, 4)"]}),
        ("RIGHT JOIN", {"a": ["#av IN (1, 3)"], "b": []}),
        ("FULL JOIN", {"a": [], "b": []}),
        ("LEFT SEMI JOIN", {"a": ["#av IN (1, 3)"], "b": ["#bv IN (2, 4)"]}),
        ("LEFT ANTI JOIN", {"a": [], "b": ["#bv IN (2, 4)"]}),
    ],
)
def test_a_join_condition_does_not_filter_a_preserved_side(
    context: kq.ExecutionContext, join: str, expected: dict[str, list[str]]
):
    sql = f"SELECT * FROM a {join} b ON ak = bk AND ((av = 1 AND bv = 2) OR (av = 3 AND bv = 4))"
    assert filters(optimized(context, sql)) == expected


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        ("LEFT JOIN", {"a": ["#av IN (1, 3)"], "b": []}),
        ("RIGHT JOIN", {"a": [], "b": ["#bv IS NULL OR (#bk = 4)"]}),
        ("FULL JOIN", {"a": [], "b": []}),
    ],
)
def test_a_filter_above_an_outer_join_reaches_its_preserved_side(
    context: kq.ExecutionContext, join: str, expected: dict[str, list[str]]
):
    conditions = {
        "LEFT JOIN": "(av = 1 AND bv IS NULL) OR (av = 3 AND bk IS NULL)",
        "RIGHT JOIN": "(av IS NULL AND bv IS NULL) OR (ak IS NULL AND bk = 4)",
        "FULL JOIN": "(av IS NULL AND bv IS NULL) OR (ak IS NULL AND bk IS NULL) OR (av = 1 AND bv IS NULL)",
    }
    sql = f"SELECT * FROM a {join} b ON ak = bk WHERE {conditions[join]}"
    assert filters(optimized(context, sql)) == expected


def test_an_outer_join_below_an_inner_one_passes_conditions_to_its_preserved_side(
    context: kq.ExecutionContext,
):
    sql = "SELECT * FROM a LEFT JOIN b ON ak = bk JOIN c ON ck = ak WHERE (av = 1 AND {}) OR (av = 2 AND {})"
    plan = optimized(context, sql.format("bv IS NULL AND cv = 3", "bk IS NULL AND cv = 4"))
    assert filters(plan) == {"a": ["#av IN (1, 2)"], "b": [], "c": ["#cv IN (3, 4)"]}


@pytest.mark.parametrize(
    "condition",
    [
        "(av = 1 AND bv = 2) OR (10 / (ak - 8) = 1 AND bv = 3)",
        "((av = 1 AND bv = 2) OR (av = 2 AND bv = 3)) AND 10 / (ak + bk + 1) > 0",
    ],
)
def test_nothing_is_derived_if_a_term_can_raise_an_error(context: kq.ExecutionContext, condition: str):
    plan = optimized(context, f"SELECT * FROM a, b WHERE ak = bk AND ({condition})")
    assert filters(plan) == {"a": [], "b": []}


def test_nothing_is_derived_if_a_projection_below_an_outer_join_can_raise_an_error(
    context: kq.ExecutionContext,
):
    sql = "SELECT * FROM (SELECT ak, av, 10 / (ak + 1) AS x FROM a) LEFT JOIN b ON ak = bk WHERE {}"
    condition = "(av = 1 AND bv IS NULL) OR (av = 3 AND bk IS NULL)"
    assert filters(optimized(context, sql.format(condition))) == {"a": [], "b": []}


def test_no_condition_is_derived_twice(context: kq.ExecutionContext):
    sql = "SELECT * FROM a, b WHERE ak = bk AND bv IN (4, 2) AND ((av = 1 AND bv = 2) OR (av = 3 AND bv = 4))"
    plan = optimized(context, sql)
    assert filters(plan) == {"a": ["#av IN (1, 3)"], "b": ["#bv IN (4, 2)"]}
    assert filters(optimize(plan)) == filters(plan)


def test_the_largest_input_is_filtered_by_selective_conditions_only(context: kq.ExecutionContext):
    ranges = "({0}v > 1 AND {1}v = 2) OR ({0}v < 3 AND {1}v = 3)"
    large = optimized(context, f"SELECT * FROM a, b WHERE ak = bk AND ({ranges.format('a', 'b')})")
    assert filters(large) == {"a": [], "b": ["#bv IN (2, 3)"]}
    small = optimized(context, f"SELECT * FROM a, b WHERE ak = bk AND ({ranges.format('b', 'a')})")
    assert filters(small) == {"a": ["#av IN (2, 3)"], "b": ["(#bv > 1) OR (#bv < 3)"]}


def test_nothing_is_derived_from_a_large_or(context: kq.ExecutionContext, monkeypatch: pytest.MonkeyPatch):
    sql = "SELECT * FROM a, b WHERE ak = bk AND ((av = 1 AND bv = 2) OR (av = 3 AND bv = 4))"
    monkeypatch.setattr(rule, "_MAX_NODES", 14)
    assert filters(optimized(context, sql)) == {"a": [], "b": []}
    monkeypatch.setattr(rule, "_MAX_NODES", 15)
    assert filters(optimized(context, sql)) == {"a": ["#av IN (1, 3)"], "b": ["#bv IN (2, 4)"]}
