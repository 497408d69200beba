"""The state that the clauses of one SELECT share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kquery_spark.expr import AggregateCall, Expr
from kquery_spark.frontends.sql.analyzer.expressions import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.grouping import GroupingMark
from kquery_spark.frontends.sql.analyzer.outer_row import OuterRow
from kquery_spark.frontends.sql.analyzer.scope import Scope
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.logical import LogicalPlan
from kquery_spark.logical.subqueries import ScalarSubquery

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer


@dataclass(frozen=True)
class SelectItem:
    """One column of the select list; ``node`` is None for a column of ``*`` or of a generator."""

    name: str
    expr: Expr
    node: ast.Expression | None


@dataclass(frozen=True)
class SelectContext:
    """One SELECT under analysis: its syntax, the outer row, the plans that produce its scopes' columns, and its windows.

    time_windows: the columns for calls of ``window`` and ``session_window``. session: the column of a session window.
    """

    queries: QueryAnalyzer
    node: q.Select
    outer: OuterRow | None
    plans: tuple[LogicalPlan, ...] = ()
    named_windows: Mapping[str, window_ast.WindowSpec] = field(default_factory=dict)
    time_windows: Mapping[ast.Call, Expr] = field(default_factory=dict)
    session: Expr | None = None

    def expressions(
        self,
        scope: Scope,
        clause: str,
        *,
        allows_aggregates: bool = False,
        allows_windows: bool = False,
        aliases: Mapping[str, Expr | None] | None = None,
        preferred: Scope | None = None,
    ) -> ExpressionAnalyzer:
        """An analyzer of expressions in a clause of this SELECT."""
        return replace(
            self.queries.expressions(scope, self.outer, clause, *self.plans),
            named_windows=self.named_windows,
            time_windows=self.time_windows,
            allows_aggregates=allows_aggregates,
            allows_windows=allows_windows,
            aliases=aliases or {},
            preferred=preferred,
        )


def is_aggregate(expr: Expr) -> bool:
    """Return whether this node itself is computed per group."""
    return isinstance(expr, AggregateCall | GroupingMark)


def is_correlated(expr: Expr) -> bool:
    """Return whether this node itself is a scalar subquery that reads the outer row."""
    return isinstance(expr, ScalarSubquery) and bool(expr.outer)


def is_all(node: object) -> bool:
    """Return whether a node is the ALL of GROUP BY ALL and ORDER BY ALL."""
    return isinstance(node, ast.Name) and len(node.parts) == 1 and node.parts[0].upper() == "ALL"
