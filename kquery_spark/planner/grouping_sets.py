"""Plans ROLLUP, CUBE and GROUPING SETS without repeating rows.

Spark's plan repeats every input row once per grouping set (Expand) and groups all of them: ROLLUP (a, b) over 1,000,000
rows groups 3,000,000 rows. Here the rows are grouped once by all keys, the finest set. The states of the other sets are
merged from these groups: with 1,000 groups of (a, b), the sets (a) and () are computed from 1,000 states each.
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
    """How to group ``child`` (the Expand's input) by ``keys``, and to derive each of the ``sets`` from these groups.

    Each set has one expression per key of the original plan: the key's column, or a literal if the key is not in the set.
    """

    plan: Aggregate
    child: LogicalPlan
    keys: tuple[Named, ...]
    aggregates: tuple[Named, ...]
    sets: tuple[tuple[Expr, ...], ...]

    def states(self, child: PhysicalPlan) -> PhysicalPlan:
        """Return the operators that compute the states of all groups of all sets. child: the planned ``self.child``."""
        finest = AggregateExec(child, self.keys, self.aggregates, Phase.PARTIAL)
        keys = tuple(Named(k.column, k.name) for k in self.plan.keys)
        return GroupingSetsExec(finest, self.sets, keys, self.plan.aggregates)


def grouping_levels(plan: Aggregate) -> Levels | None:
    """Return the levels for an Aggregate over an Expand; None if the aggregates depend on the repetition of a row.

    Also None for aggregates that are not mergeable: `try_sum` of decimal(38, 0) over (6e37, 6e37) of one group and
    (-6e37, -6e37) of another is NULL for either group and 0 for both together.

    One of the sets must have all keys. Otherwise the finest groups are not part of the result, and there may be as many as
    rows.
    """
    expand = plan.child
    if not isinstance(expand, Expand):
        return None
    # For each column of the Expand, its expressions in all repetitions. For ROLLUP (a, b), column a has (#a, #a, NULL), and
    # column b has (#b, NULL, NULL).
    values = dict(zip(expand.names, zip(*expand.projections, strict=True), strict=True))
    aggregates = _aggregates_below_expand(plan, values)
    columns = _set_columns(plan, values)
    if aggregates is None or columns is None:
        return None
    keys = tuple(column.key for column in columns if column.key is not None)
    in_sets = (column.in_sets for column in columns)
    # The set with the most keys comes first. It has to have all of them, because the other sets are merged from its
    # groups.
    sets = sorted(zip(*in_sets, strict=True), key=_column_count, reverse=True)
    if len(sets) < 2 or not keys or _column_count(sets[0]) < len(keys):
        return None
    return Levels(plan, expand.child, keys, aggregates, tuple(sets))


@dataclass(frozen=True)
class _SetColumn:
    """A key as an expression below the Expand (None if no set has it), and its value in each set: a column or a literal."""

    key: Named | None
    in_sets: tuple[Expr, ...]


def _set_columns(plan: Aggregate, values: dict[str, tuple[Expr, ...]]) -> list[_SetColumn] | None:
    """Return all keys; None if one of them cannot be computed below the Expand."""
    columns = [_set_column(key, values) for key in plan.keys]
    known = [column for column in columns if column is not None]
    return known if len(known) == len(columns) else None


def _set_column(key: Named, values: dict[str, tuple[Expr, ...]]) -> _SetColumn | None:
    """Return the key; None if the sets have different expressions for it, or if it is not deterministic."""
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


def _aggregates_below_expand(
    plan: Aggregate, values: dict[str, tuple[Expr, ...]]
) -> tuple[Named, ...] | None:
    """Return the aggregates over the Expand's input.

    None if one is DISTINCT, cannot be merged from finer groups, or reads a column that repetitions change.
    """
    if any(call.is_distinct or not call.is_mergeable for call in plan.calls):
        return None
    # Columns with the same expression in all repetitions can be computed from the Expand's input.
    same = {name: exprs[0] for name, exprs in values.items() if len(set(exprs)) == 1}
    aggregates = []
    for named in plan.aggregates:
        if not columns_of(named.expr) <= same.keys():
            return None
        aggregates.append(replace(named, expr=substitute(named.expr, same)))
    return tuple(aggregates)
