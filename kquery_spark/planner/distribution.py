"""How the rows of a physical plan are spread over tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kquery_spark.expr import Column, Expr
from kquery_spark.physical.operators import Partitioning, PhysicalPlan

#: All rows to one task.
ONE_TASK = Partitioning((), 1)


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
        renamed = [tuple(new(k) for k in keys) for keys in (self.keys, *self.also)]
        whole = [tuple(k for k in keys if k is not None) for keys in renamed if None not in keys]
        if not whole:
            return Placed(plan, Spread.SPLIT)
        return Placed(plan, Spread.KEYED, whole[0], self.count, tuple(whole[1:]), self.hashed)

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
