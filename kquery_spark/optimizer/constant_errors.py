"""Raises the errors of constant expressions such as ``1 / 0``.

Spark evaluates constants while it optimizes a query, so they raise even if no row ever reaches them.
"""

from __future__ import annotations

from kquery_spark.errors import ExecutionError, KQueryError
from kquery_spark.expr import Call, Case, Expr, HigherOrder
from kquery_spark.expr.constants import check_constant
from kquery_spark.expr.properties import can_raise, is_constant
from kquery_spark.logical import Filter, Input, Limit, LogicalPlan, Projection, Scan, walk_plan
from kquery_spark.sources.memory import MemorySource


def check_constants(plan: LogicalPlan) -> None:
    """Raise the ExecutionError of a constant subexpression, as in ``x + 1 / 0``, even if the query has no rows.

    This follows Catalyst's ConstantFolding, which suppresses errors only inside of CASE, COALESCE and NANVL. Nodes over
    literal rows are skipped: Spark has already evaluated these row by row (ConvertToLocalRelation) before it folds
    constants.
    """
    for node in walk_plan(plan):
        if not _is_over_local_rows(node):
            for expr in node.expressions:
                _check(expr)


def _is_over_local_rows(node: LogicalPlan) -> bool:
    """True if the node only filters and projects literal rows of the query, or rows that Spark supplies."""
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
            pass  # the engine cannot evaluate this constant alone; check its operands instead
        else:
            return
    for part in _checked_operands(expr):
        _check(part)


def _checked_operands(expr: Expr) -> tuple[Expr, ...]:
    """Return the operands whose errors are raised: all of them, or none for a conditional expression."""
    if isinstance(expr, HigherOrder):
        return (*expr.children, expr.body)
    return () if _is_conditional(expr) else expr.children


def _is_conditional(expr: Expr) -> bool:
    """True for Catalyst's ConditionalExpressions. ELT is lazy, too, but it does not count because it is not foldable."""
    if isinstance(expr, Call):
        return expr.entry.lazy and expr.entry.foldable and not expr.entry.operator.connective
    return isinstance(expr, Case)
