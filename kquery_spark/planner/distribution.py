"""How the rows of a physical plan are spread over tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kquery_spark.expr import Column, Expr
from kquery_spark.physical.operators import (
    FilterExec,
    LimitExec,
    PhysicalPlan,
    ProjectionExec,
    SortExec,
    WindowExec,
)


class Spread(StrEnum):
    """SINGLE: all rows in one task. SPLIT: anywhere. KEYED: equal keys in one task. RANGED: by the query's key ranges."""

    SINGLE = "single"
    SPLIT = "split"
    KEYED = "keyed"
    RANGED = "ranged"


@dataclass(frozen=True)
class Placed:
    """A physical plan and the spread of its rows; the rest only for KEYED.

    also: other keys that say the same, as the right keys of an inner join do. hashed: by hash into ``count`` tasks.
    """

    plan: PhysicalPlan
    spread: Spread
    keys: tuple[Expr, ...] = ()
    count: int = 1
    also: tuple[tuple[Expr, ...], ...] = ()
    hashed: bool = True

    def over(self, plan: PhysicalPlan) -> Placed:
        """Another plan with the same spread, as long as the columns of the keys are still there."""
        names = set(plan.schema.names)
        return self.renamed(plan, lambda k: k if isinstance(k, Column) and k.name in names else None)

    def renamed(self, plan: PhysicalPlan, new: Callable[[Expr], Expr | None]) -> Placed:
        """Another plan with the same spread, in which ``new`` says what a key is now (None: gone)."""
        if self.spread is not Spread.KEYED:
            return Placed(plan, self.spread)
        found = [tuple(new(k) for k in keys) for keys in (self.keys, *self.also)]
        kept = [tuple(k for k in keys if k is not None) for keys in found if None not in keys]
        if not kept:
            return Placed(plan, Spread.SPLIT)
        return Placed(plan, Spread.KEYED, kept[0], self.count, tuple(kept[1:]), self.hashed)

    def groups_by(self, keys: tuple[Expr, ...]) -> bool:
        """Whether rows with equal ``keys`` are already in one task."""
        if self.spread is Spread.SINGLE:
            return True
        return self.spread is Spread.KEYED and any(
            all(k in keys for k in mine) for mine in (self.keys, *self.also)
        )

    def hashed_by(self, keys: tuple[Expr, ...], count: int) -> bool:
        """Whether an exchange by these keys would leave every row where it is."""
        by_hash = self.spread is Spread.KEYED and self.hashed
        return by_hash and self.count == count and keys in (self.keys, *self.also)


def together(plan: PhysicalPlan, keys: frozenset[Expr]) -> bool:
    """Whether rows with equal ``keys`` follow each other: after a sort by them first, or as a window's partitions."""
    match plan:
        case FilterExec() | LimitExec():
            return together(plan.children[0], keys)
        case ProjectionExec():
            sources = {e.column: e.expr for e in plan.exprs}
            below = [sources.get(k) if isinstance(k, Column) else None for k in keys]
            inside = frozenset(e for e in below if e is not None)
            return len(inside) == len(below) and together(plan.child, inside)
        case SortExec():
            return keys in _prefixes((), tuple(k.expr for k in plan.keys))
        case WindowExec():
            return keys in _prefixes(plan.partition, tuple(k.expr for k in plan.order))
    return False


def _prefixes(first: tuple[Expr, ...], then: tuple[Expr, ...]) -> list[frozenset[Expr]]:
    """Sets of expressions by which rows are in order: all of ``first``, and then more and more of ``then``."""
    found = [frozenset((*first, *then[:i])) for i in range(len(then) + 1)]
    return [f for f in found if f]
