"""Lowering of the nodes that stay with their input's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.expr import Column, Expr
from kquery_spark.logical import Expand, Filter, Generate, Projection, SingleRow
from kquery_spark.physical.operators import (
    ExpandExec,
    FilterExec,
    GenerateExec,
    ProjectionExec,
    SingleRowExec,
)
from kquery_spark.planner.distribution import DistributedPlan, single_or_split
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Filter)
def lower_filter(planner: Planner, plan: Filter) -> DistributedPlan:
    """In every task."""
    child = planner.lower(plan.child)
    return child.over(FilterExec(child.plan, plan.condition))


@lowers(Projection)
def lower_projection(planner: Planner, plan: Projection) -> DistributedPlan:
    """In every task."""
    return projected(planner.lower(plan.child), plan)


def projected(child: DistributedPlan, plan: Projection) -> DistributedPlan:
    """A projection over its planned input, whose keys it may rename."""
    columns: dict[Expr, Column] = {e.expr: e.column for e in plan.exprs if isinstance(e.expr, Column)}
    return child.renamed(ProjectionExec(child.plan, plan.exprs), columns.get)


@lowers(Expand)
def lower_expand(planner: Planner, plan: Expand) -> DistributedPlan:
    """In every task; repetitions have other values, so rows with equal keys are no longer together."""
    child = planner.lower(plan.child)
    expanded = ExpandExec(child.plan, plan.projections, plan.schema)
    return DistributedPlan(expanded, single_or_split(child.distribution))


@lowers(Generate)
def lower_generate(planner: Planner, plan: Generate) -> DistributedPlan:
    """In every task."""
    child = planner.lower(plan.child)
    return child.over(
        GenerateExec(child.plan, plan.generator, plan.args, plan.outer, plan.child_columns, plan.schema)
    )


@lowers(SingleRow)
def lower_single_row(planner: Planner, plan: SingleRow) -> DistributedPlan:
    """One task sees all rows."""
    child = planner.to_one_task(planner.lower(plan.child), planner.nbytes(plan.child))
    return child.over(SingleRowExec(child.plan))
