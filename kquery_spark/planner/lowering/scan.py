"""Lowering of the leaves: scans and inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kquery_spark.logical import Input, Scan
from kquery_spark.logical.pruning import needed_filters, sized_splits
from kquery_spark.physical.operators import ReadExec, ScanExec
from kquery_spark.planner.distribution import DistributedPlan, Distribution
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Scan)
def lower_scan(planner: Planner, plan: Scan) -> DistributedPlan:
    """A scan of the splits that statistics leave; by the query's shares of files if the scan is in these."""
    splits = tuple(sized_splits(plan.source, plan.filters, plan.schema.names))
    filters = needed_filters(plan.source, splits, plan.filters)
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
    """Rows that Spark's tasks hand over, wherever Spark has them."""
    return DistributedPlan(ReadExec(plan.key or plan.name, plan.schema), Distribution.SPLIT)
