"""Lowers aggregations.

- If all rows of a group are in one task already, a single operator aggregates in place.
- Otherwise each task computes partial states, which are exchanged by the keys and merged into the final results.
- DISTINCT aggregates have two such levels (see ``planner.distinct``).
- Grouping sets are derived from the groups of the finest set (see ``planner.grouping_sets``).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from kquery_spark.expr import Named
from kquery_spark.logical import Aggregate, Projection
from kquery_spark.physical.grouping.key_values import check_key_type
from kquery_spark.physical.operators import (
    AggregateExec,
    ExchangeExec,
    Partitioning,
    Phase,
    PhysicalPlan,
)
from kquery_spark.planner.distinct import TwoLevels, sums_by_distinct_value, two_levels
from kquery_spark.planner.distribution import (
    ONE_TASK,
    DistributedPlan,
    Distribution,
    single_or_split,
    stage_leaves,
)
from kquery_spark.planner.grouping_sets import grouping_levels
from kquery_spark.planner.lowering.registry import lowers
from kquery_spark.planner.lowering.rows import with_projection

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner

_MAX_SINGLE_TASK_GROUPS = 200_000  # fewer groups than this are merged by one task
_MAX_DISTINCT_GROUP_BYTES = 256 << 20  # DISTINCT in place puts all rows of a group into one batch
_STATE_BYTES = 64  # the assumed size of the state of one group


@lowers(Aggregate)
def lower_aggregate(planner: Planner, plan: Aggregate) -> DistributedPlan:
    """Lower an aggregation, once even if the node is in the plan twice.

    The result is shared only if it reads only exchanges: then both places read the same stages. A scan cannot be shared,
    because each of its rows belongs to one task of one stage.
    """
    lowered = planner.aggregated.get(plan)
    if lowered is None:
        distinct_names = _with_distinct_key_names(plan)
        lowered = _lower_once(planner, distinct_names)
        if distinct_names is not plan:
            lowered = with_projection(lowered, _with_original_names(distinct_names, plan))
        if all(isinstance(leaf, ExchangeExec) for leaf in stage_leaves(lowered.plan)):
            planner.aggregated[plan] = lowered
    return lowered


def _with_distinct_key_names(plan: Aggregate) -> Aggregate:
    """Return the plan with new names for all keys if one of them can have the name of an internal column.

    Keys share a schema with the state columns of the aggregates (``x.0`` and ``x.1`` for ``sum(v) AS x``) and with the
    columns of an Expand (``__set`` and the others of ``planner.distinct``). Operators look up keys by name, so a key
    `x.0` would be mistaken for a sum.
    """
    states = tuple(f"{aggregate.name}." for aggregate in plan.aggregates)
    if not any(key.name.startswith((*states, "__")) for key in plan.keys):
        return plan
    used = {aggregate.name for aggregate in plan.aggregates}
    # A new name has no dot, so it is not the name of a state.
    names = (name for name in map("__key_{}".format, count()) if name not in used)
    return replace(
        plan, keys=tuple(replace(key, name=name) for key, name in zip(plan.keys, names, strict=False))
    )


def _with_original_names(renamed: Aggregate, plan: Aggregate) -> Projection:
    """Return the projection that gives the columns of the renamed plan the names of the original one."""
    outputs = (*renamed.keys, *renamed.aggregates)
    names = (e.name for e in (*plan.keys, *plan.aggregates))
    return Projection(renamed, tuple(Named(e.column, name) for e, name in zip(outputs, names, strict=True)))


def _lower_once(planner: Planner, plan: Aggregate) -> DistributedPlan:
    for key in plan.keys:
        check_key_type(key.expr.dtype)
    levels = grouping_levels(plan)
    if levels is not None:
        child = planner.lower(levels.child)
        return _merge_partial_states(
            planner, plan, DistributedPlan(levels.states(child.plan), child.distribution)
        )
    child = planner.lower(plan.child)
    # All rows of a group are read by one task from its share of the files: no states have to be exchanged.
    if child.distribution is Distribution.SHARED and planner.joins.shared_keys(plan):
        if in_place := _two_levels_in_place(planner, plan, child):
            return child.with_plan(in_place)
        return DistributedPlan(
            AggregateExec(child.plan, plan.keys, plan.aggregates, Phase.SINGLE), Distribution.SHARED
        )
    if child.is_partitioned_by(tuple(k.expr for k in plan.keys)) and not sums_by_distinct_value(plan):
        if in_place := _two_levels_in_place(planner, plan, child):
            return child.with_renamed_keys(in_place, {k.expr: k.column for k in plan.keys}.get)
        return _aggregate_in_place(child, plan)
    if any(call.is_distinct for call in plan.calls):
        return _lower_distinct(planner, plan, child)
    partial = AggregateExec(child.plan, plan.keys, plan.aggregates, Phase.PARTIAL)
    return _merge_partial_states(planner, plan, DistributedPlan(partial, child.distribution))


def _two_levels_in_place(planner: Planner, plan: Aggregate, child: DistributedPlan) -> PhysicalPlan | None:
    """Return both levels of an aggregation with DISTINCT without an exchange; None unless its groups are large.

    All rows of a group are in one task already. A single operator is faster for small groups, but it holds all rows of a
    group in memory. Two levels can spill a part of a group.
    """
    if not any(call.is_distinct for call in plan.calls):
        return None
    if planner.nbytes(plan.child) <= _MAX_DISTINCT_GROUP_BYTES * max(1.0, planner.estimator.groups(plan)):
        return None
    levels = two_levels(plan, child.plan)
    return None if levels is None else levels.last(levels.second(levels.first))


def _aggregate_in_place(child: DistributedPlan, plan: Aggregate) -> DistributedPlan:
    """Aggregate groups whose rows are already in one task."""
    # If equal keys are consecutive (after a sort or a merge), groups can be finished one after the other, without a hash
    # table.
    in_order = child.plan.clusters_by(frozenset(k.expr for k in plan.keys))
    single = AggregateExec(child.plan, plan.keys, plan.aggregates, Phase.SINGLE, in_order)
    columns = {k.expr: k.column for k in plan.keys}
    return child.with_renamed_keys(single, columns.get)


def _merge_partial_states(planner: Planner, plan: Aggregate, partial: DistributedPlan) -> DistributedPlan:
    """Exchange the partial states and merge them into results."""
    columns = tuple(k.column for k in plan.keys)
    groups = planner.estimator.groups(plan)
    # Merging the states of a few groups takes less time than starting several tasks.
    few = not columns or groups < _MAX_SINGLE_TASK_GROUPS
    count = 1 if few else planner.reduce_tasks(groups * _STATE_BYTES)
    partitioning = Partitioning(columns, count) if count > 1 else ONE_TASK
    exchanged = planner.exchange(partial, partitioning, _states_bytes(planner, plan))
    keys = tuple(Named(k.column, k.name) for k in plan.keys)
    return exchanged.with_plan(AggregateExec(exchanged.plan, keys, plan.aggregates, Phase.FINAL))


def _lower_distinct(planner: Planner, plan: Aggregate, child: DistributedPlan) -> DistributedPlan:
    """Lower DISTINCT calls in two levels if possible; otherwise exchange all rows of a group to one task."""
    levels = two_levels(plan, child.plan)
    if levels is not None:
        return _lower_two_levels(planner, plan, levels, child.distribution)
    keys = tuple(k.expr for k in plan.keys)
    return _aggregate_in_place(planner.exchange_by(child, keys, planner.nbytes(plan.child)), plan)


def _lower_two_levels(
    planner: Planner, plan: Aggregate, levels: TwoLevels, child_distribution: Distribution
) -> DistributedPlan:
    """Place the exchanges of the two levels.

    For many groups, one exchange by key is enough: each task has all values of its groups. A few groups would leave most
    tasks idle, so the first level is exchanged by key and value, and the few states of the second level are merged in one
    task.
    """
    first = DistributedPlan(levels.first, single_or_split(child_distribution))
    nbytes = planner.nbytes(plan.child)
    if plan.keys and planner.estimator.groups(plan) >= _MAX_SINGLE_TASK_GROUPS:
        by_key = planner.exchange_by(first, levels.keys, nbytes)
        return by_key.with_plan(levels.last(levels.second(by_key.plan)))
    by_value = planner.exchange_by(first, (*levels.keys, *levels.values), nbytes)
    second = DistributedPlan(levels.second(by_value.plan), single_or_split(by_value.distribution))
    few = planner.to_one_task(second, _states_bytes(planner, plan))
    return DistributedPlan(levels.last(few.plan), Distribution.SINGLE)


def _states_bytes(planner: Planner, plan: Aggregate) -> float:
    """Return the expected bytes of the partial states, assuming that each task has rows of every group."""
    return planner.estimator.groups(plan) * _STATE_BYTES * planner.config.parallelism
