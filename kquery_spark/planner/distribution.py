"""The distribution of a physical plan's rows over tasks.

The planner tracks it to avoid exchanges: a join whose inputs are both distributed by its keys, or a grouping of rows that
are already distributed by a subset of its keys, needs no shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kquery_spark.expr import Column, Expr
from kquery_spark.physical.operators import ExchangeExec, Partitioning, PhysicalPlan
from kquery_spark.types.str_enum import StrEnum

#: An exchange that sends all rows to one task.
ONE_TASK = Partitioning((), 1)


class Distribution(StrEnum):
    """Where the rows are.

    SINGLE: all rows are in one task. SPLIT: a row can be in any task. KEYED: rows with equal keys are in the same task.
    SHARED: tasks read the files by the query's FileShares; ``JoinStrategy.shared_keys`` knows which rows are together.
    """

    SINGLE = "single"
    SPLIT = "split"
    KEYED = "keyed"
    SHARED = "shared"


def single_or_split(*inputs: Distribution) -> Distribution:
    """Return SINGLE if the rows of all inputs are in one task, otherwise SPLIT (nothing is known)."""
    return Distribution.SINGLE if all(each is Distribution.SINGLE for each in inputs) else Distribution.SPLIT


def stage_leaves(plan: PhysicalPlan) -> Iterator[PhysicalPlan]:
    """Yield the leaves of the plan's last stage: what it reads, where an exchange stands for the stage that it ends."""
    if isinstance(plan, ExchangeExec) or not plan.children:
        yield plan
        return
    for child in plan.children:
        yield from stage_leaves(child)


@dataclass(frozen=True)
class DistributedPlan:
    """A physical plan and the distribution of its rows. The other fields describe a KEYED distribution.

    keys: rows with equal values of these are in the same task. alternative_keys: further keys for which this holds,
    such as the right keys of an inner join. hashed: the task of a row is the hash of its keys modulo ``count``.
    """

    plan: PhysicalPlan
    distribution: Distribution
    keys: tuple[Expr, ...] = ()
    count: int = 1
    alternative_keys: tuple[tuple[Expr, ...], ...] = ()
    hashed: bool = True

    def with_plan(self, plan: PhysicalPlan) -> DistributedPlan:
        """Return ``plan`` with the same distribution. Keys whose columns it does not output are lost."""
        names = set(plan.schema.names)
        return self.with_renamed_keys(
            plan, lambda k: k if isinstance(k, Column) and k.name in names else None
        )

    def with_renamed_keys(self, plan: PhysicalPlan, new: Callable[[Expr], Expr | None]) -> DistributedPlan:
        """Return ``plan`` with the same distribution. ``new`` returns a key's expression over its output (None: lost)."""
        if self.distribution is not Distribution.KEYED:
            return DistributedPlan(plan, self.distribution)
        # A list of keys survives only if all of its keys do: even if rows with equal (a, b) are in the same task, rows
        # with equal a can be in different tasks.
        renamed = [tuple(new(k) for k in keys) for keys in (self.keys, *self.alternative_keys)]
        whole = [tuple(k for k in keys if k is not None) for keys in renamed if None not in keys]
        if not whole:
            return DistributedPlan(plan, Distribution.SPLIT)
        return DistributedPlan(plan, Distribution.KEYED, whole[0], self.count, tuple(whole[1:]), self.hashed)

    def is_partitioned_by(self, keys: tuple[Expr, ...]) -> bool:
        """True if rows with equal ``keys`` are in the same task, because they are distributed by a subset of these."""
        if self.distribution is Distribution.SINGLE:
            return True
        return self.distribution is Distribution.KEYED and any(
            all(k in keys for k in own) for own in (self.keys, *self.alternative_keys)
        )

    def is_hash_partitioned_by(self, keys: tuple[Expr, ...], count: int) -> bool:
        """True if an exchange by these keys into ``count`` tasks would leave every row in its task."""
        by_hash = self.distribution is Distribution.KEYED and self.hashed
        return by_hash and self.count == count and keys in (self.keys, *self.alternative_keys)
