"""How the rows of a physical plan are spread over tasks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kquery_spark.expr import Column, Expr
from kquery_spark.physical.operators import PhysicalPlan


class Spread(StrEnum):
    """SINGLE: all rows in one task. SPLIT: anywhere. HASHED: equal keys in one task, by hash. RANGED: by key range."""

    SINGLE = "single"
    SPLIT = "split"
    HASHED = "hashed"
    RANGED = "ranged"


@dataclass(frozen=True)
class Placed:
    """A physical plan and the spread of its rows; ``keys`` and ``count`` only for HASHED."""

    plan: PhysicalPlan
    spread: Spread
    keys: tuple[Expr, ...] = ()
    count: int = 1

    def over(self, plan: PhysicalPlan) -> Placed:
        """Another plan with the same spread, as long as the columns of the keys are still there."""
        if self.spread is not Spread.HASHED:
            return Placed(plan, self.spread)
        names = set(plan.schema.names)
        if all(isinstance(k, Column) and k.name in names for k in self.keys):
            return Placed(plan, self.spread, self.keys, self.count)
        return Placed(plan, Spread.SPLIT)

    def groups_by(self, keys: tuple[Expr, ...]) -> bool:
        """Whether rows with equal ``keys`` are already in one task."""
        if self.spread is Spread.SINGLE:
            return True
        return self.spread is Spread.HASHED and all(k in keys for k in self.keys)
