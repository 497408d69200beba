"""ROLLUP, CUBE and GROUPING SETS: rows are grouped by all the keys once, the other sets are made of those groups.

Spark's plan repeats every row for each set (Expand) and groups the lot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kquery_spark.expr import Column, Expr, Literal, Named, columns_of, substitute
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

    Also None for aggregates that are not mergeable: `try_sum` of decimal(38, 0) over (6e37, 6e37) of one group and
    (-6e37, -6e37) of another is NULL for either group and 0 for both together.

    One of the sets must have all the keys: nobody asks for such groups otherwise, and there may be as many as rows.
    """
    expand = plan.child
    if not isinstance(expand, Expand):
        return None
    values = dict(zip(expand.names, zip(*expand.projections, strict=True), strict=True))
    aggregates = _below_expand(plan, values)
    columns = _set_columns(plan, values)
    if aggregates is None or columns is None:
        return None
    keys = tuple(column.key for column in columns if column.key is not None)
    in_sets = (column.in_sets for column in columns)
    sets = sorted(zip(*in_sets, strict=True), key=_column_count, reverse=True)
    if len(sets) < 2 or not keys or _column_count(sets[0]) < len(keys):
        return None
    return Levels(plan, expand.child, keys, aggregates, tuple(sets))


@dataclass(frozen=True)
class _SetColumn:
    """A key over what is below the Expand (None if no set has it), and what it is in each set: a column or a literal."""

    key: Named | None
    in_sets: tuple[Expr, ...]


def _set_columns(plan: Aggregate, values: dict[str, tuple[Expr, ...]]) -> list[_SetColumn] | None:
    """All keys; None if one of them cannot be moved below the Expand."""
    columns = [_set_column(key, values) for key in plan.keys]
    known = [column for column in columns if column is not None]
    return known if len(known) == len(columns) else None


def _set_column(key: Named, values: dict[str, tuple[Expr, ...]]) -> _SetColumn | None:
    """None for a key that sets have different expressions for, or that another evaluation could change."""
    if not isinstance(key.expr, Column):
        return None
    in_sets = values[key.expr.name]
    grouped = {e for e in in_sets if not isinstance(e, Literal)}
    if len(grouped) > 1 or not all(map(is_deterministic, grouped)):
        return None
    if not grouped:
        return _SetColumn(None, in_sets)
    named = Named(grouped.pop(), key.name)
    return _SetColumn(named, tuple(e if isinstance(e, Literal) else named.column for e in in_sets))


def _column_count(grouping_set: Sequence[Expr]) -> int:
    return sum(isinstance(e, Column) for e in grouping_set)


def _below_expand(plan: Aggregate, values: dict[str, tuple[Expr, ...]]) -> tuple[Named, ...] | None:
    """The aggregates over what is below the Expand.

    None where one is DISTINCT, cannot be merged from finer groups or needs a column that differs between repetitions.
    """
    if any(call.is_distinct or not call.is_mergeable for call in plan.calls):
        return None
    same = {name: exprs[0] for name, exprs in values.items() if len(set(exprs)) == 1}
    aggregates = []
    for named in plan.aggregates:
        if not columns_of(named.expr) <= same.keys():
            return None
        aggregates.append(replace(named, expr=substitute(named.expr, same)))
    return tuple(aggregates)
