"""Lowers the nodes that run in the tasks of their input, without an exchange."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.expr import Column, Expr, walk
from kquery_spark.expr.properties import conjunction, conjuncts
from kquery_spark.logical import Expand, Filter, Generate, Projection, SingleRow
from kquery_spark.logical.filter_order import ordered_terms
from kquery_spark.physical.joins.probe import ONE_SIDED
from kquery_spark.physical.operators import (
    ExpandExec,
    FilterExec,
    GenerateExec,
    JoinExec,
    ProjectionExec,
    SingleRowExec,
)
from kquery_spark.physical.operators.base import PhysicalPlan
from kquery_spark.planner.distribution import DistributedPlan, single_or_split
from kquery_spark.planner.lowering.registry import lowers

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(Filter)
def lower_filter(planner: Planner, plan: Filter) -> DistributedPlan:
    """Filter in every task."""
    child = planner.lower(plan.child)
    condition = conjunction(ordered_terms(plan, conjuncts(plan.condition)))
    assert condition is not None  # a condition has at least one term
    return child.with_plan(FilterExec(child.plan, condition))


@lowers(Projection)
def lower_projection(planner: Planner, plan: Projection) -> DistributedPlan:
    """Compute the columns in every task."""
    return with_projection(planner.lower(plan.child), plan)


def with_projection(child: DistributedPlan, plan: Projection) -> DistributedPlan:
    """Return the projection of a lowered input; the keys of its distribution get their new names."""
    columns: dict[Expr, Column] = {e.expr: e.column for e in plan.exprs if isinstance(e.expr, Column)}
    input_plan = _without_unread_pairs(child.plan, plan)
    return child.with_renamed_keys(ProjectionExec(input_plan, plan.exprs), columns.get)


def _without_unread_pairs(child: PhysicalPlan, plan: Projection) -> PhysicalPlan:
    """Drop the output columns of a join if the projection reads none, as below ``count(*)``.

    A join without output columns counts its pairs instead of producing them.
    """
    if not isinstance(child, JoinExec) or child.kind in ONE_SIDED:
        return child
    reads_columns = any(isinstance(part, Column) for e in plan.exprs for part in walk(e.expr))
    return child if reads_columns else replace(child, output=pa.schema([]))


@lowers(Expand)
def lower_expand(planner: Planner, plan: Expand) -> DistributedPlan:
    """Repeat rows in every task. The new values are not distributed by the keys any more."""
    child = planner.lower(plan.child)
    expanded = ExpandExec(child.plan, plan.projections, plan.schema)
    return DistributedPlan(expanded, single_or_split(child.distribution))


@lowers(Generate)
def lower_generate(planner: Planner, plan: Generate) -> DistributedPlan:
    """Generate rows in every task."""
    child = planner.lower(plan.child)
    return child.with_plan(
        GenerateExec(child.plan, plan.generator, plan.args, plan.outer, plan.child_columns, plan.schema)
    )


@lowers(SingleRow)
def lower_single_row(planner: Planner, plan: SingleRow) -> DistributedPlan:
    """Check the number of rows in one task, which sees all of them."""
    child = planner.to_one_task(planner.lower(plan.child), planner.nbytes(plan.child))
    return child.with_plan(SingleRowExec(child.plan))
