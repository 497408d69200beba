"""ROLLUP, CUBE and GROUPING SETS: rows are grouped by all the keys once, the other sets are made of those groups.

Spark's plan repeats every row for each set (Expand) and groups the lot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kquery_spark.expr import AggregateCall, Column, Expr, Literal, Named, columns_of, substitute
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical import Aggregate, Expand, LogicalPlan
from kquery_spark.physical.operators import AggregateExec, GroupingSetsExec, Phase, PhysicalPlan


@dataclass(frozen=True)
class Levels:
    """``child`` without the repetition; its groups by ``keys`` give those of each of ``sets``."""

    plan: Aggregate
    child: LogicalPlan
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]
    sets: tuple[tuple[Expr, ...], ...]

    def states(self, child: PhysicalPlan) -> PhysicalPlan:
        """States of all groups, over the planned ``child``."""
        finest = AggregateExec(child, self.keys, self.aggregates, Phase.PARTIAL)
        keys = tuple(Named(k.column, k.name) for k in self.plan.keys)
        return GroupingSetsExec(finest, self.sets, keys, self.plan.aggregates)


def grouping_levels(plan: Aggregate) -> Levels | None:
    """How to group by sets of keys without repeating rows; None where a row is not the same in each repetition.

    One of the sets must have all the keys: nobody asks for such groups otherwise, and there may be as many as rows.
    """
    expand = plan.child
    if not isinstance(expand, Expand) or any(call.is_distinct for call in plan.calls):
        return None
    values = {name: [p[i] for p in expand.projections] for i, name in enumerate(expand.names)}
    same = {name: exprs[0] for name, exprs in values.items() if len(set(exprs)) == 1}
    keys: list[Named] = []
    rows: list[list[Expr]] = [[] for _ in expand.projections]
    for key in plan.keys:
        if not isinstance(key.expr, Column):
            return None
        found = {e for e in values[key.expr.name] if not isinstance(e, Literal)}
        if len(found) > 1 or not all(map(is_deterministic, found)):
            return None
        if found:
            keys.append(Named(found.pop(), key.name))
        for row, expr in zip(rows, values[key.expr.name], strict=True):
            row.append(expr if isinstance(expr, Literal) else keys[-1].column)
    sets = sorted((tuple(row) for row in rows), key=_columns, reverse=True)
    aggregates = _below(plan, same)
    if aggregates is None or len(sets) == 1 or not keys or _columns(sets[0]) < len(keys):
        return None
    return Levels(plan, expand.child, tuple(keys), aggregates, tuple(sets))


def _columns(chosen: tuple[Expr, ...]) -> int:
    return sum(isinstance(e, Column) for e in chosen)


def _below(plan: Aggregate, same: dict[str, Expr]) -> tuple[Named, ...] | None:
    """The aggregates over what is below the Expand; None where one needs a column that differs between repetitions."""
    found = []
    for named in plan.aggregates:
        call = named.expr
        assert isinstance(call, AggregateCall)
        if not columns_of(call) <= set(same):
            return None
        found.append(replace(named, expr=substitute(call, same)))
    return tuple(found)
