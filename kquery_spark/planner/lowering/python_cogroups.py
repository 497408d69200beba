"""Lowers Python UDFs on cogroups.

Both sides are exchanged by their keys and concatenated into one input, sorted by key and then by side. Each key's rows are
then consecutive, the left ones first. A row has the columns (keys, is_right, left arguments, right arguments), with NULLs
in the arguments of the other side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.expr import Column, Literal, Named, SortKey
from kquery_spark.logical import CogroupPython
from kquery_spark.physical.grouping.key_values import check_key_type
from kquery_spark.physical.operators import (
    CogroupPythonExec,
    Partitioning,
    PhysicalPlan,
    ProjectionExec,
    SortExec,
    UnionExec,
)
from kquery_spark.planner.distribution import DistributedPlan, Distribution, single_or_split
from kquery_spark.planner.lowering.python_functions import tasks_of_groups
from kquery_spark.planner.lowering.registry import lowers
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner


@lowers(CogroupPython)
def lower_cogroup_python(planner: Planner, plan: CogroupPython) -> DistributedPlan:
    """Call the function in the tasks that have all rows of a key."""
    for key in plan.left_side.keys:
        check_key_type(key.dtype)
    left, right = _exchange_by_keys(planner, plan)
    union = _both_sides(plan, left.plan, right.plan)
    names = iter(union.schema)
    keys = tuple(_column(next(names)) for _ in plan.left_side.keys)
    is_right, *args = map(_column, names)
    ordered = SortExec(union, tuple(SortKey(key) for key in (*keys, is_right)))
    left_args = len(plan.left_side.args)
    cogrouped = CogroupPythonExec(ordered, keys, is_right, tuple(args), left_args, plan.calls, plan.schema)
    return DistributedPlan(cogrouped, single_or_split(left.distribution, right.distribution))


def _exchange_by_keys(planner: Planner, plan: CogroupPython) -> tuple[DistributedPlan, DistributedPlan]:
    """Return both sides, with the rows of a key in the same task."""
    left, right = planner.lower(plan.left), planner.lower(plan.right)
    left_bytes, right_bytes = planner.nbytes(plan.left), planner.nbytes(plan.right)
    are_single = left.distribution is right.distribution is Distribution.SINGLE
    if are_single or not plan.left_side.keys:
        return planner.to_one_task(left, left_bytes), planner.to_one_task(right, right_bytes)
    rows = sum(planner.estimator.estimate(side).rows for side in plan.children)
    count = tasks_of_groups(planner, left_bytes + right_bytes, rows)
    return (
        planner.exchange(left, Partitioning(plan.left_side.keys, count), left_bytes),
        planner.exchange(right, Partitioning(plan.right_side.keys, count), right_bytes),
    )


def _both_sides(plan: CogroupPython, left: PhysicalPlan, right: PhysicalPlan) -> UnionExec:
    """Concatenate both sides with the columns that the module's docstring describes."""
    sides = ((left, plan.left_side, False), (right, plan.right_side, True))
    inputs = []
    for child, side, is_right in sides:
        own = list(side.args)
        others = [Literal(None, arg.dtype) for arg in (plan.left_side if is_right else plan.right_side).args]
        args = [*others, *own] if is_right else [*own, *others]
        exprs = (*side.keys, Literal(is_right, t.BOOL), *args)
        inputs.append(ProjectionExec(child, tuple(Named(e, f"_{i}") for i, e in enumerate(exprs))))
    fields = [pa.field(f.name, f.type, True) for f in inputs[0].schema]
    return UnionExec(tuple(inputs), pa.schema(fields))


def _column(field: pa.Field) -> Column:
    return Column(field.name, field.type, field.nullable)
