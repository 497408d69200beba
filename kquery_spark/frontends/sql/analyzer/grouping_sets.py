"""ROLLUP, CUBE and GROUPING SETS: each input row once per set, with the keys the set leaves out as NULL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Expr
from kquery_spark.frontends.sql.analyzer.grouping import Grouping
from kquery_spark.frontends.sql.analyzer.scope import Names
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.logical import LogicalPlan
from kquery_spark.types import names as t

Sets = list[list[Expr]]
Resolve = Callable[[ast.Expression], Expr]


@dataclass(frozen=True)
class GroupingMark(Expr):
    """``grouping(key)`` or ``grouping_id(keys)`` until the grouping is known."""

    keys: tuple[Expr, ...]
    whole: bool

    @property
    def dtype(self) -> pa.DataType:
        """See Expr."""
        return t.LONG if self.whole else t.BYTE

    @property
    def nullable(self) -> bool:
        """See Expr."""
        return False

    @property
    def children(self) -> tuple[Expr, ...]:
        """See Expr."""
        return self.keys

    def with_children(self, children: Sequence[Expr]) -> Expr:
        """See Expr."""
        return replace(self, keys=tuple(children))


def grouping_sets(group_by: q.GroupBy, resolve: Resolve) -> Sets | None:
    """The sets of keys to group by, one after the other; None for plain keys only."""
    if group_by.sets_of is not None:
        for element in group_by.elements:
            assert isinstance(element, ast.Expression)
            resolve(element)
        return [[resolve(e) for e in s.expressions] for s in group_by.sets_of]
    if all(isinstance(e, ast.Expression) for e in group_by.elements):
        return None
    sets: Sets = [[]]
    for element in group_by.elements:
        sets = [a + b for a in sets for b in _sets(element, resolve)]
    return sets


def _sets(element: q.GroupingElement | q.GroupingSet, resolve: Resolve) -> Sets:
    match element:
        case q.Rollup():
            groups = [[resolve(e) for e in s] for s in element.sets]
            return [_flat(groups[:n]) for n in range(len(groups), -1, -1)]
        case q.Cube():
            groups = [[resolve(e) for e in s] for s in element.sets]
            chosen = [c for n in range(len(groups), -1, -1) for c in combinations(range(len(groups)), n)]
            return [_flat([groups[i] for i in c]) for c in chosen]
        case q.GroupingSets():
            return [s for inner in element.elements for s in _sets(inner, resolve)]
        case q.GroupingSet():
            return [[resolve(e) for e in element.expressions]]
    assert isinstance(element, ast.Expression)
    return [[resolve(element)]]


def _flat(groups: Sequence[Sequence[Expr]]) -> list[Expr]:
    return [e for group in groups for e in group]


def expanded(plan: LogicalPlan, sets: Sets, grouping: Grouping, names: Names) -> LogicalPlan:
    """The input repeated for each set, and the keys given to ``grouping``."""
    raise Unsupported("ROLLUP, CUBE and GROUPING SETS are not supported.")


__all__ = ["GroupingMark", "PlanError", "expanded", "grouping_sets"]
