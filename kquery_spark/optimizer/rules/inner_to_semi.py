"""Inner joins of which one side only decides whether rows are there become semi joins."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.expr import columns_of
from kquery_spark.expr.properties import is_deterministic, is_harmless
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LogicalPlan,
    Projection,
    SetOperation,
    Sort,
    Union,
)
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import over
from kquery_spark.optimizer.statistics import Estimator

_EXPANDS = 2.0  # rows of the inner join for each row of its larger side, from which on repeating them costs
_EXISTENCE = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)


def inner_to_semi(plan: LogicalPlan) -> LogicalPlan:
    """``x SEMI JOIN (SELECT a.k FROM a JOIN b)`` becomes ``x SEMI JOIN (SELECT a.k FROM a SEMI JOIN b)``.

    Below DISTINCT, ``min`` and ``max``, and on the right of semi and anti joins, it does not matter how often a row is
    there; so a join need not repeat the rows of one side for each row of the other when nothing else reads the other.
    Joins that are not expected to make many rows of few stay, as either side of them can be looked up in the other.
    """
    return _Conversion().of(plan, frozenset(plan.schema.names), False)


class _Conversion:
    def __init__(self) -> None:
        self._estimator = Estimator()

    def of(self, plan: LogicalPlan, needed: frozenset[str], loose: bool) -> LogicalPlan:
        """``needed``: the columns read above; ``loose``: equal rows may as well be one."""
        match plan:
            case Projection() | Filter() | Sort():
                passes = loose and all(is_deterministic(e) for e in plan.expressions)
                own = columns_of(*plan.expressions)
                below = own if isinstance(plan, Projection) else own | needed
                return over(plan, [self.of(plan.children[0], frozenset(below), passes)])
            case Aggregate():
                free = all(c.distinct or c.entry.duplicate_free for c in plan.calls)
                free = free and all(is_deterministic(e) for e in plan.expressions)
                return over(plan, [self.of(plan.child, frozenset(columns_of(*plan.expressions)), free)])
            case Join():
                return self._join(plan, needed, loose)
            case Union() | SetOperation():
                passes = loose if isinstance(plan, Union) else not plan.all
                return over(plan, [self.of(c, frozenset(c.schema.names), passes) for c in plan.children])
        return over(plan, [self.of(c, frozenset(c.schema.names), False) for c in plan.children])

    def _join(self, plan: Join, needed: frozenset[str], loose: bool) -> LogicalPlan:
        if (
            loose
            and plan.kind is JoinKind.INNER
            and self._expands(plan)
            and all(map(is_harmless, plan.expressions))
        ):
            if needed <= set(plan.left.schema.names):
                plan = replace(plan, kind=JoinKind.SEMI)
            elif needed <= set(plan.right.schema.names):
                keys = tuple(JoinKey(k.right, k.left, k.null_safe) for k in plan.keys)
                plan = replace(plan, left=plan.right, right=plan.left, kind=JoinKind.SEMI, keys=keys)
        below = frozenset(needed | columns_of(*plan.expressions))
        asked = plan.kind in _EXISTENCE
        return over(plan, [self.of(plan.left, below, loose), self.of(plan.right, below, loose or asked)])

    def _expands(self, plan: Join) -> bool:
        rows = [self._estimator.estimate(p).rows for p in (plan, plan.left, plan.right)]
        return rows[0] > _EXPANDS * max(rows[1:])
