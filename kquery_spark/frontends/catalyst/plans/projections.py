"""Imports Project, Filter, and nodes that do not change rows."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.expr import Case, Column, Expr, Literal, Named, columns_of
from kquery_spark.expr.properties import always_evaluated, can_raise
from kquery_spark.expr.traverse import substitute
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.subqueries import ScalarSubqueries
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import LogicalPlan, Projection, Scan
from kquery_spark.logical.filter import with_filter
from kquery_spark.logical.filter_order import has_known_order, ordered_terms
from kquery_spark.logical.partition_conditions import check_partition_conditions
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t

# Filters that Spark adds on its own account: they drop rows that a join above drops in any case.
REDUNDANT_FILTERS = frozenset({"BloomFilterMightContain", "DynamicPruningSubquery"})
_MAX_STEPS = 100  # each one adds a nested CASE, and Python limits recursion
_REPARTITIONS = ("Repartition", "RepartitionByExpression", "RebalancePartitions")


@PLANS.handles("SubqueryAlias", "View", "ResolvedHint", family="projections")
def import_child(node: CatalystNode, context: Context) -> PlanScope:
    """Import nodes that only assign names: returns the scope of the child."""
    return context.subtree(node.children[0])


@PLANS.handles(
    *_REPARTITIONS,
    family="partitions",
    partly="below an aggregate, a join, a window or a sort of all rows, which distribute rows anew",
)
def repartition(node: CatalystNode, context: Context) -> PlanScope:
    """Omit a repartitioning whose effect the query cannot observe."""
    if id(node) not in context.required.with_unobservable_partitioning:
        raise Unsupported("repartitioning that the query can observe is not supported")
    child = context.subtree(node.children[0])
    return child.with_plan(child.plan)  # drops hidden columns, which only a Filter preserves


@PLANS.handles("Project", family="projections")
def project(node: CatalystNode, context: Context) -> PlanScope:
    """Import Project. Computed columns may be variants. A Project of plain columns only changes the scope."""
    child = context.subtree(node.children[0])
    subqueries = ScalarSubqueries(context)
    translate = context.translator(child.columns, subqueries)
    items = [
        (item["exprId"], item["name"], translate.with_variants(item)) for item in node.trees("projectList")
    ]
    if node.children[0].cls in _REPARTITIONS:
        _check_merge(child.plan, [expr for *_, expr in items])
    return compute(subqueries.attach(child.plan), items, context)


def _check_merge(plan: LogicalPlan, exprs: Sequence[Expr]) -> None:
    """Raise Unsupported if an expression may skip a column that can raise, and that was computed before a repartitioning.

    Spark computes the column for every row. Without the repartitioning, the optimizer merges the two projections, and the
    merged expression may not evaluate the column for some rows, as in a CASE.
    """
    if not isinstance(plan, Projection):
        return
    raising = {name: expr for name, expr in plan.definitions.items() if can_raise(expr)}
    for expr in exprs:
        evaluated = {raising[name] for name in columns_of(expr) & raising.keys()}
        if evaluated and not evaluated.issubset(always_evaluated(substitute(expr, plan.definitions))):
            raise Unsupported(
                "an expression that may skip an error of a column computed before a repartitioning is not supported"
            )


def compute(plan: LogicalPlan, items: list[tuple[int, str, Expr]], context: Context) -> PlanScope:
    """Add columns to a plan, given as (expression id, alias, expression)."""
    output: list[tuple[int, str]] = []
    exprs: dict[str, Named] = {}
    for expr_id, alias, expr in items:
        name = expr.name if isinstance(expr, Column) else context.names.fresh(alias)
        exprs.setdefault(name, Named(expr, name))
        output.append((expr_id, name))
    if any(not isinstance(n.expr, Column) for n in exprs.values()):
        plan = Projection(plan, tuple(exprs.values()))
    return PlanScope(plan, tuple(output))


@PLANS.handles("Filter", family="projections")
def filter_(node: CatalystNode, context: Context) -> PlanScope:
    """Import Filter. Terms without a subquery come first, unless errors would be raised for other rows than in Spark."""
    child = context.subtree(node.children[0])
    subqueries = ScalarSubqueries(context)
    translate = context.translator(child.columns, subqueries)
    terms: list[Expr] = []
    with_subquery: set[Expr] = set()
    for term in conjunct_nodes(node.tree("condition")):
        if term.cls in REDUNDANT_FILTERS:
            continue
        before = subqueries.uses
        terms.append(translate(term))
        if subqueries.uses > before:
            with_subquery.add(terms[-1])
    if len(terms) > 1 and not all(map(has_known_order, terms)):
        raise Unsupported(
            "IS NOT NULL of an expression that can raise, beside other conditions, is not supported"
        )
    # Late terms are evaluated above the joins with the subqueries. The first one has a subquery. After it, a term that can
    # raise is late, too, because Spark evaluates it for fewer rows. After a late term that can raise, all terms are late:
    # before it, they would drop rows for which Spark raises.
    late: list[Expr] = []
    late_raises = False
    for expr in ordered_terms(child.plan, terms):
        if expr in with_subquery or late_raises or (late and can_raise(expr)):
            late.append(expr)
            late_raises = late_raises or can_raise(expr)
    early = [expr for expr in terms if expr not in late]
    _check_directories(child.plan, early)
    plan = with_filter(child.plan, early)
    if late:
        plan = with_filter(subqueries.attach(plan), _as_steps(late))
    return child.filtered(plan)


def _as_steps(terms: Sequence[Expr]) -> list[Expr]:
    """Combine the terms from the first one that can raise into one term, which the optimizer cannot split.

    For example, ``a``, ``1 / b > 0``, and ``c`` become ``a`` and ``CASE WHEN 1 / b > 0 THEN c ELSE FALSE END``. Otherwise,
    the optimizer would push ``c`` below the subqueries' joins, and ``1 / b`` would see fewer rows than in Spark.
    """
    first = next((i for i, term in enumerate(terms) if can_raise(term)), len(terms) - 1)
    if len(terms) - first > _MAX_STEPS:
        raise Unsupported(
            f"filters with more than {_MAX_STEPS} terms after one with a subquery that can raise are not supported"
        )
    step = terms[-1]
    for term in reversed(terms[first:-1]):
        step = Case(((term, step),), Literal(False, t.BOOL))
    return [*terms[:first], step]


def _check_directories(plan: LogicalPlan, terms: list[Expr]) -> None:
    """Raise Unsupported if Spark may raise an error while it prunes directories, for which the engine may have no row."""
    names: dict[str, Expr] = {}
    if isinstance(plan, Projection):
        names, plan = {n.name: n.expr for n in plan.exprs}, plan.child
    if not isinstance(plan, Scan):
        return
    try:
        check_partition_conditions(plan.source, [substitute(term, names) for term in terms])
    except ExecutionError as error:
        raise Unsupported(f"Spark raises an error for a directory of the table: {error}") from error


def conjunct_nodes(node: CatalystNode) -> list[CatalystNode]:
    """The terms of an And, from left to right."""
    terms, stack = [], [node]
    while stack:
        top = stack.pop()
        if top.cls == "And":
            stack.extend(reversed(top.children))
        else:
            terms.append(top)
    return terms
