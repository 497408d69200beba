"""Imports Aggregate. Spark's results are arbitrary expressions; here they become an Aggregate and a Projection above it.

For example, the results ``k + 1, sum(x) / count(y)`` BY k become the Projection ``k + 1, s / c`` over the Aggregate
``k, sum(x) AS s, count(y) AS c``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Column, Expr, Named, columns_of
from kquery_spark.frontends.catalyst.expressions.aggregate_functions import (
    known_aggregate,
    takes_rows_in_order,
)
from kquery_spark.frontends.catalyst.expressions.translator import AggregateSink
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.projections import compute
from kquery_spark.frontends.catalyst.plans.python_aggregates import (
    AggregateCalls,
    PythonAggregates,
    calls_python,
)
from kquery_spark.frontends.catalyst.plans.python_functions import require_python_functions, unnamed
from kquery_spark.frontends.catalyst.plans.session_windows import check_session, session_key
from kquery_spark.frontends.catalyst.plans.subqueries import ScalarSubqueries
from kquery_spark.frontends.catalyst.scope import PlanScope, check_key
from kquery_spark.logical import Aggregate, GroupPython, LogicalPlan
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.logical.session_windows import aggregate_sessions
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode


class _Calls(AggregateSink):
    """The different aggregate calls of one Aggregate, each with the name of its column."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.named: list[Named] = []
        self.alias: str | None = None

    @override
    def column(self, call: AggregateCall) -> Column:
        for known in self.named:
            if known.expr == call:
                return known.column
        name = self._context.names.fresh(call.function if self.alias is None else self.alias)
        self.named.append(Named(call, name))
        return self.named[-1].column


@PLANS.handles("Aggregate", family="aggregates")
def aggregate(node: CatalystNode, context: Context) -> PlanScope:
    """GROUP BY, DISTINCT and global aggregates."""
    if calls_python(node):
        return _python_aggregate(node, context)
    _check_functions(node)
    session = session_key(node, context)
    if session is not None:
        check_session(node, session)
    child = context.subtree_or_handover(node.children[0])
    below, above = ScalarSubqueries(context), ScalarSubqueries(context)
    arguments = context.translator(child.columns, below)
    keys = _keys(node, [arguments(g) for g in node.trees("groupingExpressions")], context)
    calls = _Calls(context)
    translate = context.translator(child.columns, above, calls, arguments)
    items: list[tuple[int, str, Expr]] = []
    for item in node.trees("aggregateExpressions"):
        direct = item.cls == "Alias" and item.children[0].cls in ("AggregateExpression", "MakeDecimal")
        calls.alias = item["name"] if direct else None
        items.append((item["exprId"], item["name"], _over_keys(translate(item), keys)))
    rows = below.attach(child.plan)
    plan: LogicalPlan
    if session is None:
        plan = Aggregate(rows, keys, tuple(calls.named))
    else:
        window = _key_of(child.columns[session["exprId"]], keys)
        plan = aggregate_sessions(rows, keys, window, tuple(calls.named), context.names.fresh)
    joined = above.attach(plan)
    _check_grouped(joined, items)
    return compute(joined, items, context)


def _python_aggregate(node: CatalystNode, context: Context) -> PlanScope:
    """An Aggregate whose results are computed by Python functions of groups, which are not aggregates of the engine."""
    functions = require_python_functions(context, "a Python aggregate function")
    child = context.subtree_or_handover(node.children[0])
    arguments = context.translator(child.columns)
    keys = _keys(node, [arguments(g) for g in node.trees("groupingExpressions")], context)
    calls = AggregateCalls(context, arguments, functions)
    translate = context.translator(child.columns, None, PythonAggregates(calls), arguments)
    items = [
        (item["exprId"], item["name"], _over_keys(translate(item), keys))
        for item in node.trees("aggregateExpressions")
    ]
    results = pa.schema(calls.results)
    code = functions.groups_evaluation(calls.eval_type, calls.calls, unnamed(calls.types), results)
    made = PythonCalls(results, tuple(calls.shown), *code)
    plan = GroupPython(child.plan, keys, tuple(calls.arguments), made, aggregates=True)
    _check_grouped(plan, items)
    return compute(plan, items, context)


def _check_grouped(plan: LogicalPlan, items: Sequence[tuple[int, str, Expr]]) -> None:
    """Raise Unsupported for a result that reads other columns than keys and aggregates."""
    for _, name, expr in items:
        if not columns_of(expr) <= plan.column_names:
            raise Unsupported(f"{name} is neither grouped by nor aggregated")


def _check_functions(node: CatalystNode) -> None:
    """Raise Unsupported for functions that fall back to Spark, before the input's files are listed.

    Functions that depend on the order of rows fall back if the query sorts the rows first.
    """
    below = node.children[0]
    while below.cls in ("Project", "Filter", "SubqueryAlias"):
        below = below.children[0]
    is_sorted = below.cls in ("Sort", "GlobalLimit", "LocalLimit")
    parts = (part for item in node.trees("aggregateExpressions") for part in item.walk())
    for function in (p.child("aggregateFunction") for p in parts if p.cls == "AggregateExpression"):
        if function.cls != "PivotFirst":
            known_aggregate(function.cls)
        if is_sorted and takes_rows_in_order(function):
            raise Unsupported(f"{function.cls} of sorted rows is not supported")


def _keys(plan: CatalystNode, exprs: list[Expr], context: Context) -> tuple[Named, ...]:
    keys: dict[str, Named] = {}
    for node, expr in zip(plan.trees("groupingExpressions"), exprs, strict=True):
        check_key(expr.dtype)
        if any(known.expr == expr for known in keys.values()):
            continue
        name = (
            expr.name if isinstance(expr, Column) else context.names.fresh(node.fields.get("name") or "key")
        )
        keys[name] = Named(expr, name)
    return tuple(keys.values())


def _key_of(column: Column, keys: tuple[Named, ...]) -> Named:
    """Find the key that is this column of the input."""
    return next(key for key in keys if key.expr == column)


def _over_keys(expr: Expr, keys: tuple[Named, ...]) -> Expr:
    """Replace each part of an expression that is a grouping expression by the column of its key."""
    for key in keys:
        if expr == key.expr:
            return key.column
    if not expr.children:
        return expr
    return expr.with_children([_over_keys(child, keys) for child in expr.children])
