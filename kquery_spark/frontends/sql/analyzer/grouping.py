"""Collects the keys and aggregates of a SELECT, and rewrites the expressions above its Aggregate node.

For ``SELECT k + 1, sum(x) / 2 ... GROUP BY k`` the Aggregate has the columns k and ``s = sum(x)``, and the select list is
rewritten to ``k + 1, s / 2`` over these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import AggregateCall, Call, Cast, Column, Expr, Literal, Named, walk
from kquery_spark.expr.properties import is_constant
from kquery_spark.frontends.unique_names import UniqueNames
from kquery_spark.logical import Aggregate, LogicalPlan
from kquery_spark.logical.session_windows import aggregate_sessions
from kquery_spark.types import names as t


@dataclass(frozen=True)
class GroupingMark(Expr):
    """A placeholder for ``grouping(key)`` or ``grouping_id(keys)`` until the grouping sets are known."""

    keys: tuple[Expr, ...]
    whole: bool

    @property
    @override
    def dtype(self) -> pa.DataType:
        return t.LONG if self.whole else t.BYTE

    @property
    @override
    def nullable(self) -> bool:
        return False

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return self.keys

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, keys=tuple(children))


class Grouping:
    """Collects keys and aggregates and rewrites expressions of the select list to read their columns."""

    def __init__(self, names: UniqueNames, grouped: bool = True) -> None:
        self._names = names
        self._grouped = grouped
        self.keys: list[Named] = []
        self.aggregates: list[Named] = []
        self._columns: dict[Expr, Expr] = {}
        self._sets: tuple[list[Expr], Expr] | None = None

    def add_key(self, expr: Expr) -> None:
        """Group by an expression; repeated ones count once."""
        if expr in self._columns:
            return
        name = expr.name if isinstance(expr, Column) else self._names.fresh("key")
        named = Named(expr, name)
        self.keys.append(named)
        self._columns[expr] = named.column

    def add_keys(self, exprs: Sequence[Expr]) -> None:
        """Group by the expressions that are not constant; Spark drops constant keys without evaluating them.

        If all are constant, a constant key is added: an Aggregate without keys returns one row for an empty input, but
        GROUP BY a constant returns none.
        """
        varying = [expr for expr in exprs if not is_constant(expr)]
        for expr in varying:
            self.add_key(expr)
        if exprs and not varying:
            self.keys.append(Named(Literal(0, t.INT), self._names.fresh("key")))

    def replace_key(self, expr: Expr, column: Expr) -> None:
        """Replace ``expr`` by ``column`` above the aggregate."""
        self._columns[expr] = column

    def set_ids(self, keys: Sequence[Expr], grouping_id: Expr) -> None:
        """Set the keys of the grouping sets, in the order of the bits of ``grouping_id``."""
        self._sets = (list(keys), grouping_id)

    def rewrite(self, expr: Expr) -> Expr:
        """Rewrite an expression to read the aggregate's output; PlanError for a column that is not grouped or aggregated."""
        column = self._columns.get(expr)
        if column is not None:
            return column
        if isinstance(expr, AggregateCall):
            return self._aggregate(expr)
        if isinstance(expr, GroupingMark):
            return self._grouping(expr)
        if isinstance(expr, Column):
            error = "MISSING_AGGREGATION" if self._grouped else "MISSING_GROUP_BY"
            raise PlanError(
                f"[{error}] the column {expr.name} is neither grouped by nor inside an aggregate "
                "function; add it to GROUP BY or use any_value"
            )
        children = expr.children
        if not children:
            return expr
        return expr.with_children([self.rewrite(c) for c in children])

    def _grouping(self, mark: GroupingMark) -> Expr:
        if self._sets is None:
            raise PlanError(
                "[UNSUPPORTED_GROUPING_EXPRESSION] grouping and grouping_id go with ROLLUP, CUBE and GROUPING SETS"
            )
        keys, grouping_id = self._sets
        if mark.whole:
            if mark.keys and list(mark.keys) != keys:
                raise PlanError(
                    "[GROUPING_ID_COLUMN_MISMATCH] grouping_id takes all the grouping keys, in order"
                )
            return grouping_id
        if mark.keys[0] not in keys:
            raise PlanError("[GROUPING_COLUMN_MISMATCH] grouping takes one of the grouping keys")
        shift = Literal(len(keys) - 1 - keys.index(mark.keys[0]), t.INT)
        bit = Call.of("bitand", Call.of("shiftright", grouping_id, shift), Literal(1, t.LONG))
        return Cast(bit, t.BYTE)

    def _aggregate(self, call: AggregateCall) -> Expr:
        named = Named(call, self._names.fresh(call.default_alias or call.function))
        self.aggregates.append(named)
        self._columns[call] = named.column
        return named.column

    def plan(self, child: LogicalPlan, session: Expr | None = None) -> LogicalPlan:
        """Build the Aggregate; call it after everything above has been rewritten. session: the session window, if any."""
        keys, aggregates = tuple(self.keys), tuple(self.aggregates)
        if session is None:
            return Aggregate(child, keys, aggregates)
        key = next((key for key in keys if key.expr == session), None)
        if key is None:
            raise Unsupported(
                "aggregates with a session_window that is not a key of GROUP BY are not supported"
            )
        calls = [call.expr for call in aggregates if isinstance(call.expr, AggregateCall)]
        if any(call.is_distinct or call.entry.ordered for call in calls):
            raise Unsupported(
                "DISTINCT and functions of the rows' order by session windows are not supported"
            )
        return aggregate_sessions(child, keys, key, aggregates, self._names.fresh)


def contains(expr: Expr, test: Callable[[Expr], bool]) -> bool:
    """Return whether an expression or anything below it passes a test."""
    return any(map(test, walk(expr)))
