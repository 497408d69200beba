"""Window functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr
from kquery_spark.frontends.sql.analyzer.scope import Names
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.logical import LogicalPlan

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer


def is_window_function(name: str) -> bool:
    """Whether a function exists only over a window."""
    return name.lower() in (
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
        "lag",
        "lead",
        "first_value",
        "last_value",
        "nth_value",
    )


def window_call(analyzer: ExpressionAnalyzer, node: ast.Call) -> Expr:
    """The expression of a call with OVER."""
    raise Unsupported("Window functions are not supported.")


class WindowMark:
    """Unused until window nodes are there."""


class Windows:
    """Collects window calls."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def rewrite(self, expr: Expr) -> Expr:
        """The expression over the window's output."""
        return expr

    def plan(self, child: LogicalPlan) -> LogicalPlan:
        """The child with its windows."""
        return child
