"""Lowers joins. The strategies are tried in this order, from the cheapest to the most expensive:

1. in one task, or co-located by file shares: no row moves (``_without_shuffle``);
2. with a replicated build side: only the small side is computed in every task (``_with_replicated_side``);
3. one of these after a semi-join reduction has made a side small enough;
4. with the smaller side sent to the tasks that read the larger side by buckets or key ranges (``_send_to_shares``);
5. with both sides shuffled by the keys (``_lower_shuffled``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kquery_spark.expr import Expr
from kquery_spark.logical import Aggregate, Join, JoinKind, LogicalPlan, walk_plan
from kquery_spark.logical.join import JoinKey
from kquery_spark.physical.dynamic_filters.runtime_filter import drops_unmatched
from kquery_spark.physical.grouping.key_values import check_key_type
from kquery_spark.physical.operators import (
    BuildSide,
    ExchangeExec,
    JoinExec,
    Partitioning,
    PhysicalPlan,
    ReplicateExec,
)
from kquery_spark.planner.distribution import DistributedPlan, Distribution, stage_leaves
from kquery_spark.planner.lowering.registry import lowers
from kquery_spark.planner.semi_joins import null_rejecting_keys, reduce_groups, reduce_sides

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Join)
def lower_join(planner: Planner, plan: Join) -> DistributedPlan:
    """Lower a join by the cheapest possible strategy."""
    for key in plan.keys:
        check_key_type(key.left.dtype)
    local = _without_shuffle(planner, plan)
    if local is not None:
        return local
    if plan.keys and not plan.null_aware:
        # A reduction can make a side small enough to be replicated, so the strategies without a shuffle are tried again.
        reduced = reduce_sides(plan, planner.estimator, planner.joins.is_replicable)
        local = None if reduced is plan else _without_shuffle(planner, reduced)
        if local is not None:
            return local
        plan = reduced
    inner = plan.kind is JoinKind.INNER
    return _lower_shuffled(
        planner, plan, (planner.joins.smaller if inner else planner.joins.build_side)(plan)
    )


def _without_shuffle(planner: Planner, plan: Join) -> DistributedPlan | None:
    build = planner.joins.build_side(plan)
    if planner.one_task or planner.joins.is_colocated(plan):
        left, right = planner.lower(plan.left), planner.lower(plan.right)
        joined = _join_exec(plan, left.plan, right.plan, build)
        return DistributedPlan(joined, Distribution.SINGLE if planner.one_task else Distribution.SHARED)
    return _with_replicated_side(planner, plan, build) if planner.joins.replicates(plan, build) else None


def _with_replicated_side(planner: Planner, plan: Join, build: BuildSide) -> DistributedPlan:
    """Lower a join whose build side every task computes by itself."""
    built, probe = (plan.left, plan.right) if build is BuildSide.LEFT else (plan.right, plan.left)
    if drops_unmatched(plan.kind, build is BuildSide.LEFT):
        keys = null_rejecting_keys(plan)
        if build is BuildSide.LEFT:
            keys = [(right, left) for left, right in keys]

        def is_shuffled(aggregate: Aggregate) -> bool:
            return not planner.joins.shared_keys(aggregate)

        # The build side is computed in every task anyway, so its keys can also reduce the groups of the probe side.
        probe = reduce_groups(probe, keys, built, planner.estimator, is_shuffled)
    probed = planner.lower(probe)
    built_exec = _lower_from_read_stages(planner, built, probed)
    if built_exec is None:
        built_exec = ReplicateExec(planner.in_one_task().lower(built).plan)
    left, right = (built_exec, probed.plan) if build is BuildSide.LEFT else (probed.plan, built_exec)
    return probed.with_plan(_join_exec(plan, left, right, build))


def _lower_from_read_stages(
    planner: Planner, built: LogicalPlan, probe: DistributedPlan
) -> PhysicalPlan | None:
    """Lower the build side over the stages that the probe side reads as well; None if it needs anything else.

    If the probe side is a single task that reads an aggregation which the build side contains, too (a CTE used twice), the
    build side can read the result of this aggregation instead of computing it again.
    """
    if probe.distribution is not Distribution.SINGLE:
        return None
    if not any(node in planner.aggregated for node in walk_plan(built)):
        return None
    lowered = planner.lower(built)
    if lowered.distribution is not Distribution.SINGLE:
        return None
    read = [leaf for leaf in stage_leaves(probe.plan) if isinstance(leaf, ExchangeExec)]
    needed = [leaf for leaf in stage_leaves(lowered.plan) if isinstance(leaf, ExchangeExec)]
    only_these = all(any(exchange is other for other in read) for exchange in needed)
    return lowered.plan if only_these else None


def _lower_shuffled(planner: Planner, plan: Join, build: BuildSide) -> DistributedPlan:
    """Lower a join with an exchange of one or both sides."""
    left_bytes, right_bytes = planner.nbytes(plan.left), planner.nbytes(plan.right)
    count = planner.reduce_tasks(left_bytes + right_bytes)
    compares_keys = bool(plan.keys) and not plan.null_aware
    # Without keys (or for NOT IN) every row may match every other, so all rows go to one task.
    if compares_keys and count > 1:
        local_larger_side = _send_to_shares(planner, plan, build)
        if local_larger_side is not None:
            return local_larger_side
    left, right = planner.lower(plan.left), planner.lower(plan.right)
    if not compares_keys or left.distribution is right.distribution is Distribution.SINGLE:
        left, right = planner.to_one_task(left, left_bytes), planner.to_one_task(right, right_bytes)
        return DistributedPlan(_join_exec(plan, left.plan, right.plan, build), Distribution.SINGLE)
    left = planner.exchange(left, Partitioning(tuple(k.left for k in plan.keys), count), left_bytes)
    right = planner.exchange(right, Partitioning(tuple(k.right for k in plan.keys), count), right_bytes)
    shuffled = _join_exec(plan, left.plan, right.plan, build)
    if count == 1:
        return DistributedPlan(shuffled, Distribution.SINGLE)
    return _with_key_distribution(plan, shuffled, plan.keys, count, hashed=True)


def _send_to_shares(planner: Planner, plan: Join, build: BuildSide) -> DistributedPlan | None:
    """Shuffle only the smaller side, to the tasks that read the larger side from files by buckets or key ranges.

    None if the larger side is neither bucketed nor clustered by a key of the join.
    """
    for local in (BuildSide.LEFT, BuildSide.RIGHT):
        side, other = (plan.left, plan.right) if local is BuildSide.LEFT else (plan.right, plan.left)
        # Sending the larger side would cost more than it saves.
        if planner.nbytes(other) > planner.nbytes(side):
            continue
        pairs = [(k.left, k.right) if local is BuildSide.LEFT else (k.right, k.left) for k in plan.keys]
        partitioned = _bucket_partitioning(planner, side, pairs) or _range_partitioning(planner, side, pairs)
        if partitioned is None:
            continue
        # ``side_planner`` reads the larger side by its shares, without an exchange. The exchange of the other side has as
        # many partitions as there are shares, so task i of the stage gets the matching rows of both.
        side_planner, partitioning = partitioned
        read = side_planner.lower(side).plan
        sent = ExchangeExec(planner.lower(other).plan, partitioning, planner.nbytes(other))
        left, right = (read, sent) if local is BuildSide.LEFT else (sent, read)
        joined = _join_exec(plan, left, right, build)
        keys = [
            k for k, (_, other_key) in zip(plan.keys, pairs, strict=True) if other_key in partitioning.keys
        ]
        return _with_key_distribution(plan, joined, keys, partitioning.count, hashed=False)
    return None


def _bucket_partitioning(
    planner: Planner, side: LogicalPlan, keys: Sequence[tuple[Expr, Expr]]
) -> tuple[Planner, Partitioning] | None:
    """Return the planner that reads ``side`` by its buckets, and the partitioning that sends the other rows to them."""
    bucket_keys = planner.joins.bucket_keys(side, keys)
    if bucket_keys is None or planner.shares is None:
        return None
    buckets = planner.shares.buckets
    return planner, Partitioning(bucket_keys, max(buckets) + 1, buckets=buckets)


def _range_partitioning(
    planner: Planner, side: LogicalPlan, keys: Sequence[tuple[Expr, Expr]]
) -> tuple[Planner, Partitioning] | None:
    """Return the planner that reads ``side`` by ranges of a key, and the partitioning that sends the other rows to them."""
    for key, other_key in keys:
        by_range = planner.planner_for_ranges(side, key)
        bounds = None if by_range is None or by_range.shares is None else by_range.shares.bounds
        if by_range is not None and bounds is not None:
            return by_range, Partitioning((other_key,), len(bounds) + 1, bounds)
    return None


def _join_exec(plan: Join, left: PhysicalPlan, right: PhysicalPlan, build: BuildSide) -> JoinExec:
    return JoinExec(left, right, plan.kind, plan.keys, plan.condition, build, plan.schema, plan.null_aware)


def _with_key_distribution(
    plan: Join, joined: JoinExec, keys: Sequence[JoinKey], count: int, hashed: bool
) -> DistributedPlan:
    """Return the join with the distribution of its output, for sides that are distributed by ``keys``."""
    left_keys, right_keys = tuple(k.left for k in keys), tuple(k.right for k in keys)
    if plan.kind is JoinKind.FULL:  # the keys of either side can be padded with NULL, in any task
        return DistributedPlan(joined, Distribution.SPLIT)
    if plan.kind is JoinKind.RIGHT:
        return DistributedPlan(joined, Distribution.KEYED, right_keys, count, hashed=hashed)
    # In the rows of an inner join, both sides of a key are equal, so its right keys determine the task as well.
    alternative_keys = (right_keys,) if plan.kind is JoinKind.INNER else ()
    return DistributedPlan(joined, Distribution.KEYED, left_keys, count, alternative_keys, hashed)
