"""Constants that raise, which Spark evaluates while it optimizes a query, whether a row gets to them or not."""

from __future__ import annotations

from kquery_spark.errors import ExecutionError, KQueryError
from kquery_spark.expr import Call, Case, Expr, HigherOrder
from kquery_spark.expr.constants import check_constant
from kquery_spark.expr.properties import can_raise, is_constant
from kquery_spark.logical import Filter, Input, Limit, LogicalPlan, Projection, Scan, walk_plan
from kquery_spark.sources.memory import MemorySource


def check_constants(plan: LogicalPlan) -> None:
    """Raise the ExecutionError of a constant that no condition keeps rows from: ``x + 1 / 0``, also of no rows.

    As Catalyst's ConstantFolding, which forgives an error only inside of CASE, COALESCE and NANVL. What is computed of rows
    in the query itself Spark computes before, row by row.
    """
    for node in walk_plan(plan):
        if not _is_over_local_rows(node):
            for expr in node.expressions:
                _check(expr)


def _is_over_local_rows(node: LogicalPlan) -> bool:
    """Whether a node only filters and projects rows that are in the query itself, or that Spark hands over."""
    while isinstance(node, Projection | Filter | Limit):
        node = node.child
    return isinstance(node, Input) or (isinstance(node, Scan) and isinstance(node.source, MemorySource))


def _check(expr: Expr) -> None:
    if not can_raise(expr):
        return
    if is_constant(expr):
        try:
            check_constant(expr)
        except ExecutionError:
            raise
        except KQueryError:
            pass  # a constant that only rows can tell the value of
        else:
            return
    for part in _checked_operands(expr):
        _check(part)


def _checked_operands(expr: Expr) -> tuple[Expr, ...]:
    """The operands whose errors count: all, but none of a conditional expression."""
    if isinstance(expr, HigherOrder):
        return (*expr.children, expr.body)
    return () if _is_conditional(expr) else expr.children


def _is_conditional(expr: Expr) -> bool:
    """Whether the expression is one of Catalyst's ConditionalExpressions; a lazy one that is not foldable, ELT, is none."""
    if isinstance(expr, Call):
        return expr.entry.lazy and expr.entry.foldable and not expr.entry.operator.connective
    return isinstance(expr, Case)
