"""Lowers sorts and limits.

A sort in the middle of a query runs in one task. The last sort of a query can be shared: tasks sort ranges of the first
key, and the result is the concatenation of the tasks' rows. A limit above a sort is a top-k: each task finds its own first
rows, and one task merges them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.logical import Limit, Projection, Sort
from kquery_spark.physical.grouping.key_values import check_key_type
from kquery_spark.physical.operators import ExchangeExec, LimitExec, ProjectionExec, SortExec
from kquery_spark.planner.distribution import DistributedPlan, Distribution
from kquery_spark.planner.lowering.registry import lowers
from kquery_spark.planner.sort_ranges import sort_ranges

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner

_MAX_TOP_K_ROWS = 100_000  # larger limits above a sort are lowered as a full sort and a limit
# In multiples of small_bytes: for fewer bytes, one task has sorted them before several tasks have started.
_SHARED_SORT_SMALL_BYTES = 2.0
_MAX_SINGLE_SORT_BYTES = 8 << 20  # the driver sorts fewer bytes than this (and driver_bytes) by one task


@lowers(Sort)
def lower_sort(planner: Planner, plan: Sort) -> DistributedPlan:
    """Sort all rows in one task."""
    return _first_in_order(planner, plan, None)


def lower_result_sort(planner: Planner, plan: Sort) -> DistributedPlan:
    """Sort ranges of the first key in several tasks if there are enough bytes and the ranges can be determined.

    If the files are clustered by the key, the tasks read the ranges directly. Otherwise the rows are exchanged by range.
    """
    nbytes = planner.nbytes(plan.child)
    min_bytes = max(
        _SHARED_SORT_SMALL_BYTES * planner.config.small_bytes,
        min(planner.config.driver_bytes, _MAX_SINGLE_SORT_BYTES),
    )
    if planner.one_task or nbytes < min_bytes:
        return lower_sort(planner, plan)
    _check_keys(plan)
    first = plan.keys[0]
    # Tasks read ranges of ascending keys, and results are concatenated in task order.
    by_range = planner.planner_for_ranges(plan.child, first.expr) if first.ascending else None
    child = (by_range or planner).lower(plan.child)
    # Each task reads one range of the key.
    if by_range is not None and child.distribution is Distribution.SHARED:
        return DistributedPlan(SortExec(child.plan, plan.keys), Distribution.SPLIT)
    count = planner.reduce_tasks(nbytes)
    ranges = sort_ranges(plan, count) if count > 1 and child.distribution is not Distribution.SINGLE else None
    if ranges is None:
        return _sorted_in_one_task(planner, plan, child, None)
    return DistributedPlan(SortExec(ExchangeExec(child.plan, ranges, nbytes), plan.keys), Distribution.SPLIT)


@lowers(Limit)
def lower_limit(planner: Planner, plan: Limit) -> DistributedPlan:
    """Limit the rows of every task first, then those of all tasks together. Above a sort, both steps are a top-k."""
    below = plan.child
    if isinstance(below, Projection) and isinstance(below.child, Sort):
        limited = lower_limit(planner, Limit(below.child, plan.count, plan.offset))
        return DistributedPlan(ProjectionExec(limited.plan, below.exprs), Distribution.SINGLE)
    rows = None if plan.count is None else plan.count + plan.offset
    if isinstance(below, Sort):
        child = _first_in_order(
            planner, below, rows if rows is not None and rows <= _MAX_TOP_K_ROWS else None
        )
    else:
        child = planner.lower(below)
        if child.distribution is not Distribution.SINGLE:
            # No task has to output more rows than the limit needs in total.
            if rows is not None:
                child = DistributedPlan(LimitExec(child.plan, rows), child.distribution)
            child = planner.to_one_task(child, planner.nbytes_of_first(below, rows))
    return DistributedPlan(LimitExec(child.plan, plan.count, plan.offset), Distribution.SINGLE)


def _first_in_order(planner: Planner, plan: Sort, limit: int | None) -> DistributedPlan:
    _check_keys(plan)
    return _sorted_in_one_task(planner, plan, planner.lower(plan.child), limit)


def _sorted_in_one_task(
    planner: Planner, plan: Sort, child: DistributedPlan, limit: int | None
) -> DistributedPlan:
    """Sort in one task and keep the first ``limit`` rows (None: all). With a limit, every task first sorts its own rows."""
    if child.distribution is not Distribution.SINGLE:
        if limit is not None:
            child = DistributedPlan(SortExec(child.plan, plan.keys, limit), child.distribution)
        child = planner.to_one_task(child, planner.nbytes_of_first(plan.child, limit))
    return DistributedPlan(SortExec(child.plan, plan.keys, limit), Distribution.SINGLE)


def _check_keys(plan: Sort) -> None:
    for key in plan.keys:
        check_key_type(key.expr.dtype)
