"""Lowering of aggregations: partial and final, in place where groups are together, or in two levels for DISTINCT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.expr import Named
from kquery_spark.logical import Aggregate
from kquery_spark.physical.keys import check_key_type
from kquery_spark.physical.operators import (
    AggregateExec,
    ExchangeExec,
    Partitioning,
    Phase,
    PhysicalPlan,
)
from kquery_spark.planner.distinct import TwoLevels, sums_by_distinct_value, two_levels
from kquery_spark.planner.distribution import ONE_TASK, DistributedPlan, Distribution, single_or_split
from kquery_spark.planner.grouping_sets import grouping_levels
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner

_MAX_SINGLE_TASK_GROUPS = 200_000  # so many are finished by one task
_STATE_BYTES = 64  # of one group


@lowers(Aggregate)
def lower_aggregate(planner: Planner, plan: Aggregate) -> DistributedPlan:
    """A node that is in the plan twice reads the same stage twice, if nothing but stages feeds it."""
    lowered = planner.aggregated.get(plan)
    if lowered is None:
        lowered = _aggregate(planner, plan)
        if not _has_leaves(lowered.plan):
            planner.aggregated[plan] = lowered
    return lowered


def _aggregate(planner: Planner, plan: Aggregate) -> DistributedPlan:
    for key in plan.keys:
        check_key_type(key.expr.dtype)
    levels = grouping_levels(plan)
    if levels is not None:
        child = planner.lower(levels.child)
        return _final(planner, plan, DistributedPlan(levels.states(child.plan), child.distribution))
    child = planner.lower(plan.child)
    if child.distribution is Distribution.SHARED and planner.joins.shared(plan):
        return DistributedPlan(
            AggregateExec(child.plan, plan.keys, plan.aggregates, Phase.SINGLE), Distribution.SHARED
        )
    if child.groups_by(tuple(k.expr for k in plan.keys)) and not sums_by_distinct_value(plan):
        return _in_place(child, plan)
    if any(call.is_distinct for call in plan.calls):
        return _distinct(planner, plan, child)
    partial = AggregateExec(child.plan, plan.keys, plan.aggregates, Phase.PARTIAL)
    return _final(planner, plan, DistributedPlan(partial, child.distribution))


def _in_place(child: DistributedPlan, plan: Aggregate) -> DistributedPlan:
    """Groups whose rows are in one task already."""
    in_order = child.plan.clusters_by(frozenset(k.expr for k in plan.keys))
    single = AggregateExec(child.plan, plan.keys, plan.aggregates, Phase.SINGLE, in_order)
    columns = {k.expr: k.column for k in plan.keys}
    return child.renamed(single, columns.get)


def _final(planner: Planner, plan: Aggregate, partial: DistributedPlan) -> DistributedPlan:
    """The results of an aggregation's partial states."""
    columns = tuple(k.column for k in plan.keys)
    groups = planner.estimator.groups(plan)
    few = not columns or groups < _MAX_SINGLE_TASK_GROUPS
    count = 1 if few else planner.reduce_tasks(groups * _STATE_BYTES)
    partitioning = Partitioning(columns, count) if count > 1 else ONE_TASK
    exchanged = planner.exchange(partial, partitioning, _states_bytes(planner, plan))
    keys = tuple(Named(k.column, k.name) for k in plan.keys)
    return exchanged.over(AggregateExec(exchanged.plan, keys, plan.aggregates, Phase.FINAL))


def _distinct(planner: Planner, plan: Aggregate, child: DistributedPlan) -> DistributedPlan:
    """DISTINCT calls see the rows of a group together, or their values in a level of their own."""
    levels = two_levels(plan, child.plan)
    if levels is not None:
        return _two_levels(planner, plan, levels, child.distribution)
    keys = tuple(k.expr for k in plan.keys)
    return _in_place(planner.exchange_by(child, keys, planner.nbytes(plan.child)), plan)


def _two_levels(
    planner: Planner, plan: Aggregate, levels: TwoLevels, child_distribution: Distribution
) -> DistributedPlan:
    """By key when there are many groups; else by key and value, and the few groups meet in one task."""
    first = DistributedPlan(levels.first, single_or_split(child_distribution))
    nbytes = planner.nbytes(plan.child)
    if plan.keys and planner.estimator.groups(plan) >= _MAX_SINGLE_TASK_GROUPS:
        by_key = planner.exchange_by(first, levels.keys, nbytes)
        return by_key.over(levels.last(levels.second(by_key.plan)))
    by_value = planner.exchange_by(first, (*levels.keys, *levels.values), nbytes)
    second = DistributedPlan(levels.second(by_value.plan), single_or_split(by_value.distribution))
    few = planner.to_one_task(second, _states_bytes(planner, plan))
    return DistributedPlan(levels.last(few.plan), Distribution.SINGLE)


def _states_bytes(planner: Planner, plan: Aggregate) -> float:
    """Expected bytes of an aggregation's partial states: each task may have rows of every group."""
    return planner.estimator.groups(plan) * _STATE_BYTES * planner.config.parallelism


def _has_leaves(plan: PhysicalPlan) -> bool:
    """Whether something other than stages feeds the plan."""
    if isinstance(plan, ExchangeExec):
        return False
    return not plan.children or any(map(_has_leaves, plan.children))
