"""How the rows of a physical plan are spread over tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kquery_spark.expr import Column, Expr
from kquery_spark.physical.operators import Partitioning, PhysicalPlan
from kquery_spark.types.str_enum import StrEnum

#: All rows to one task.
ONE_TASK = Partitioning((), 1)


class Distribution(StrEnum):
    """SINGLE: all rows in one task. SPLIT: anywhere. KEYED: equal keys in one task. SHARED: by the query's file shares."""

    SINGLE = "single"
    SPLIT = "split"
    KEYED = "keyed"
    SHARED = "shared"


def single_or_split(*inputs: Distribution) -> Distribution:
    """The distribution of rows of which no more is known: SINGLE if those of all inputs are in one task."""
    return Distribution.SINGLE if all(one is Distribution.SINGLE for one in inputs) else Distribution.SPLIT


@dataclass(frozen=True)
class DistributedPlan:
    """A physical plan and the distribution of its rows; the rest only for KEYED.

    also: other keys that say the same, as the right keys of an inner join do. hashed: by hash into ``count`` tasks.
    """

    plan: PhysicalPlan
    distribution: Distribution
    keys: tuple[Expr, ...] = ()
    count: int = 1
    also: tuple[tuple[Expr, ...], ...] = ()
    hashed: bool = True

    def over(self, plan: PhysicalPlan) -> DistributedPlan:
        """Another plan with the same distribution, as long as the columns of the keys are still there."""
        names = set(plan.schema.names)
        return self.renamed(plan, lambda k: k if isinstance(k, Column) and k.name in names else None)

    def renamed(self, plan: PhysicalPlan, new: Callable[[Expr], Expr | None]) -> DistributedPlan:
        """Another plan with the same distribution, in which ``new`` says what a key is now (None: gone)."""
        if self.distribution is not Distribution.KEYED:
            return DistributedPlan(plan, self.distribution)
        renamed = [tuple(new(k) for k in keys) for keys in (self.keys, *self.also)]
        whole = [tuple(k for k in keys if k is not None) for keys in renamed if None not in keys]
        if not whole:
            return DistributedPlan(plan, Distribution.SPLIT)
        return DistributedPlan(plan, Distribution.KEYED, whole[0], self.count, tuple(whole[1:]), self.hashed)

    def groups_by(self, keys: tuple[Expr, ...]) -> bool:
        """Whether rows with equal ``keys`` are already in one task."""
        if self.distribution is Distribution.SINGLE:
            return True
        return self.distribution is Distribution.KEYED and any(
            all(k in keys for k in own) for own in (self.keys, *self.also)
        )

    def hashed_by(self, keys: tuple[Expr, ...], count: int) -> bool:
        """Whether an exchange by these keys would leave every row where it is."""
        by_hash = self.distribution is Distribution.KEYED and self.hashed
        return by_hash and self.count == count and keys in (self.keys, *self.also)
