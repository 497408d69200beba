"""Lowers the leaves: scans and inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kquery_spark.logical import Input, Scan
from kquery_spark.logical.filter_order import ordered_terms
from kquery_spark.logical.pruning import needed_filters, sized_splits
from kquery_spark.physical.operators import ReadExec, ScanExec
from kquery_spark.planner.distribution import DistributedPlan, Distribution
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Scan)
def lower_scan(planner: Planner, plan: Scan) -> DistributedPlan:
    """Scan the splits that remain after pruning, by the query's file shares if these contain the scan."""
    splits = tuple(sized_splits(plan.source, plan.filters, plan.schema.names))
    filters = tuple(ordered_terms(plan, needed_filters(plan.source, splits, plan.filters)))
    columns = tuple(plan.schema.names)
    scan_id = next(planner.scan_ids)
    scan = ScanExec(
        scan_id,
        plan.table,
        plan.source,
        columns,
        filters,
        splits,
        planner.one_task,
        files_pruned=plan.files_pruned,
    )
    shares = None if planner.shares is None else planner.shares.scans.get(plan)
    if shares is not None:
        return DistributedPlan(replace(scan, shares=shares.splits), Distribution.SHARED)
    return DistributedPlan(scan, Distribution.SINGLE if planner.one_task else Distribution.SPLIT)


@lowers(Input)
def lower_input(planner: Planner, plan: Input) -> DistributedPlan:
    """Read the rows that Spark supplies, in the tasks in which Spark has them."""
    return DistributedPlan(ReadExec(plan.key or plan.name, plan.schema), Distribution.SPLIT)
