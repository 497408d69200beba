"""Nodes answer for themselves, and one that says nothing is a barrier to every rule."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Call, Expr, Literal, Named, SortKey
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Limit,
    LogicalPlan,
    Projection,
    Scan,
    Sort,
    Union,
    walk_plan,
)
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.plan import UnaryPlan
from kquery_spark.optimizer import optimize
from kquery_spark.planner import plan_query
from kquery_spark.sources.memory import memory_source


@dataclass(frozen=True)
class Unknown(UnaryPlan):
    """A node that overrides nothing but its schema."""

    child: LogicalPlan

    def derive_schema(self) -> pa.Schema:
        return self.child.schema


def scan(prefix: str = "") -> Scan:
    columns = {f"{prefix}a": [1, 2], f"{prefix}b": ["x", "y"], f"{prefix}c": [0.5, 1.5]}
    return Scan("t", memory_source(pa.table(columns)))


def column(plan: LogicalPlan, name: str) -> Named:
    return Named(plan.column(name), name)


def is_one(plan: LogicalPlan, name: str = "a") -> Expr:
    return Call.of("eq", plan.column(name), Literal(1, pa.int64()))


def text(plan: LogicalPlan) -> list[str]:
    return [line.strip() for line in str(plan).splitlines()]


def test_an_unknown_node_is_a_barrier():
    ordered = Sort(scan(), (SortKey(scan().column("a")),))
    below = Unknown(ordered)
    plan = Projection(Filter(below, is_one(below)), (column(below, "a"),))
    optimized = optimize(Aggregate(plan, (column(plan, "a"),), ()))
    labels = [type(node).__name__ for node in walk_plan(optimized)]
    assert labels[-3:] == ["Unknown", "Sort", "Scan"], "the sort stays, and the filter stays above"
    assert "projection=[a, b, c]" in str(optimized)
    with pytest.raises(Unsupported, match="the engine has no operator for Unknown"):
        plan_query(optimized, EngineConfig())


def test_an_unknown_node_gives_safe_answers():
    node = Unknown(scan())
    assert not node.is_row_wise and not node.preserves_rows and not node.carries_columns
    assert node.prune_columns({"a"}) is node
    assert node.required_columns({"a"}) == ({"a", "b", "c"},)
    assert node.push_down(is_one(node)) is None
    assert node.is_order_sensitive(False)
    assert node.is_duplicate_insensitive(True) == (False,)
    assert node.estimated_rows([7.0]) == 7.0


def test_columns_that_a_node_reads_or_passes_on():
    t = scan()
    assert Filter(t, is_one(t)).required_columns({"b"}) == ({"a", "b"},)
    assert Limit(t, 3).required_columns({"b"}) == ({"b"},)
    counted = Aggregate(t, (column(t, "a"),), (Named(AggregateCall.of("sum", t.column("c")), "s"),))
    assert counted.required_columns({"s"}) == ({"a", "c"},)
    assert counted.prune_columns({"a"}).required_columns({"a"}) == ({"a"},)
    joined = Join(t, scan("r_"), JoinKind.INNER, (JoinKey(t.column("a"), scan("r_").column("r_a")),))
    assert joined.required_columns({"b", "r_c"}) == ({"a", "b"}, {"r_a", "r_c"})


def test_a_narrowed_union_has_the_same_columns_in_each_input():
    union = Union((scan(), scan("r_")))
    narrowed = union.prune_columns({"c", "a"})
    assert [child.schema.names for child in narrowed.children] == [["a", "c"], ["r_a", "r_c"]]
    assert union.prune_columns({"a", "b", "c"}) is union


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        (JoinKind.INNER, True, True),
        (JoinKind.LEFT, True, False),
        (JoinKind.RIGHT, False, True),
        (JoinKind.FULL, False, False),
        (JoinKind.SEMI, True, None),
        (JoinKind.ANTI, True, None),
        (JoinKind.EXISTENCE, True, None),
    ],
)
def test_filters_pass_to_the_sides_of_a_join_that_are_not_padded(
    kind: JoinKind, left: bool, right: bool | None
):
    a, b = scan(), scan("r_")
    join = Join(a, b, kind, exists="found" if kind is JoinKind.EXISTENCE else "")
    assert join.push_down(is_one(a)) == ((is_one(a), None) if left else None)
    if right is not None:
        assert join.push_down(is_one(b, "r_a")) == ((None, is_one(b, "r_a")) if right else None)


def test_a_filter_on_keys_passes_an_aggregate_and_one_on_results_does_not():
    t = scan()
    plan = Aggregate(t, (Named(t.column("a"), "k"),), (Named(AggregateCall.of("count"), "n"),))
    assert plan.push_down(is_one(plan, "k")) == (is_one(t),)
    assert plan.push_down(is_one(plan, "n")) is None
    assert plan.trace_to_input(plan.column("k")) == (t, t.column("a"))
    assert plan.trace_to_input(plan.column("n")) is None


def test_a_projection_over_nothing_it_computes_is_gone_but_an_alias_is_not():
    t = scan()
    same = Projection(t, (column(t, "a"),))
    assert text(optimize(same)) == ["Scan: t; projection=[a]"]
    assert text(optimize(Projection(t, (Named(t.column("a"), "x"),))))[0] == "Projection: #a AS x"


def test_a_node_map_distinguishes_equal_nodes():
    one, other = scan(), scan()
    values: NodeMap[str] = NodeMap()
    values[one] = "one"
    assert one in values and other not in values
    assert values.get(other) is None
    assert values.setdefault(other, lambda: "other") == values[other] == "other"
    assert len(values) == 2 and [id(node) for node in values] == [id(one), id(other)]
