"""Scalar subqueries: the single row of a subquery is joined to the rows of the node that uses its value.

A left join without keys returns NULL if the subquery has no row. If the subquery may have more than one row, this is checked
at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Named
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.scope import PlanScope, exactly
from kquery_spark.logical import Join, JoinKind, LogicalPlan, Projection, SingleRow
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode


class ScalarSubqueries:
    """The subqueries in the expressions of one node; equal ones are computed once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: list[tuple[CatalystNode, Callable[[CatalystNode], LogicalPlan], LogicalPlan]] = []
        self.uses = 0

    def scalar(self, node: CatalystNode) -> Column:
        """The column for a ScalarSubquery."""
        return self._column(node, self._single, 0)

    def field(self, node: CatalystNode) -> Column | None:
        """The column for a field of a subquery that Spark merged from several ones; None for a field of another struct."""
        subquery = node.child("child")
        if not _is_merged(subquery.tree("plan")):
            return None
        return self._column(subquery, self._merged, node["ordinal"])

    def attach(self, plan: LogicalPlan) -> LogicalPlan:
        """Add the columns of the subqueries to a plan."""
        for *_, subquery in self._known:
            plan = Join(plan, subquery, JoinKind.LEFT)
        return plan

    def _column(
        self, subquery: CatalystNode, to_plan: Callable[[CatalystNode], LogicalPlan], position: int
    ) -> Column:
        self.uses += 1
        if subquery.children:
            raise Unsupported("a correlated scalar subquery is not supported")
        field = self._plan(subquery.tree("plan"), to_plan).schema.field(position)
        return Column(field.name, field.type, True)

    def _plan(self, node: CatalystNode, to_plan: Callable[[CatalystNode], LogicalPlan]) -> LogicalPlan:
        for known, how, plan in self._known:
            if how == to_plan and _are_equal_trees(known, node):
                return plan
        plan = to_plan(node)
        if not at_most_one_row(node):
            plan = SingleRow(plan)
        self._known.append((node, to_plan, plan))
        return plan

    def _single(self, node: CatalystNode) -> LogicalPlan:
        scope = self._context.subtree_or_handover(node)
        return exactly(scope, scope.names()[:1])

    def _merged(self, node: CatalystNode) -> LogicalPlan:
        """The fields of the struct that Spark builds for merged subqueries, as columns."""
        scope: PlanScope = self._context.subtree_or_handover(node.children[0])
        translate = self._context.translator(scope.columns)
        struct = node.trees("projectList")[0].children[0]
        named = [
            Named(translate(value), self._context.names.fresh(str(name.fields.get("value") or "value")))
            for name, value in zip(struct.children[::2], struct.children[1::2], strict=True)
        ]
        return Projection(scope.plan, tuple(named))


def at_most_one_row(node: CatalystNode) -> bool:
    """Return whether a plan returns at most one row, whatever the data is."""
    match node.cls:
        case "Aggregate":
            return not node.trees("groupingExpressions")
        case "GlobalLimit":
            limit = node.tree("limitExpr")
            one = limit.cls == "Literal" and limit.fields.get("value") in ("0", "1")
            return one or at_most_one_row(node.children[0])
        case "Project" | "Filter" | "Sort" | "LocalLimit" | "Offset" | "SubqueryAlias" | "Distinct":
            return at_most_one_row(node.children[0])
        case "OneRowRelation":
            return True
        case "Join":
            inner = node["joinType"] in ("Inner", "Cross", "LeftOuter", "RightOuter")
            return inner and all(at_most_one_row(child) for child in node.children)
    return False


def _is_merged(node: CatalystNode) -> bool:
    if node.cls != "Project" or len(node.trees("projectList")) != 1:
        return False
    only = node.trees("projectList")[0]
    return only.cls == "Alias" and only.children[0].cls == "CreateNamedStruct"


def _are_equal_trees(a: Any, b: Any) -> bool:
    """Return whether two trees are equal, including expression ids, so that they are the same subquery."""
    if isinstance(a, CatalystNode):
        return isinstance(b, CatalystNode) and _same_node(a, b)
    if isinstance(a, list):
        return isinstance(b, list) and _same_items(a, b)
    return bool(a == b)


def _same_node(a: CatalystNode, b: CatalystNode) -> bool:
    return (
        a.qualified == b.qualified
        and a.fields.keys() == b.fields.keys()
        and all(_are_equal_trees(value, b.fields[key]) for key, value in a.fields.items())
        and _same_items(a.children, b.children)
    )


def _same_items(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(map(_are_equal_trees, a, b))
