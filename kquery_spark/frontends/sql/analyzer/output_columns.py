"""The output columns of a query: unique names, and the plan that returns the values under these names."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.expr import Column, Expr, Named
from kquery_spark.logical import Aggregate, LogicalPlan, Projection


def column_names(values: Sequence[Expr]) -> list[str] | None:
    """Return the column names of values that are plain columns; None if one of them is not a column."""
    columns = [v for v in values if isinstance(v, Column)]
    return [c.name for c in columns] if len(columns) == len(values) else None


def output_plan(plan: LogicalPlan, values: Sequence[Expr], names: list[str]) -> LogicalPlan:
    """Project these values under these names; omit the Projection if the plan's top node can be renamed instead."""
    columns = column_names(values)
    if plan.schema.names == names == columns:
        return plan
    if isinstance(plan, Aggregate) and list(values) == [plan.column(n) for n in plan.schema.names]:
        return _renamed_aggregate(plan, names)
    if isinstance(plan, Projection) and columns is not None:
        definitions = plan.definitions
        return Projection(plan.child, _named([definitions[c] for c in columns], names))
    return Projection(plan, _named(values, names))


def _renamed_aggregate(plan: Aggregate, names: Sequence[str]) -> Aggregate:
    outputs = _named([output.expr for output in (*plan.keys, *plan.aggregates)], names)
    count = len(plan.keys)
    return Aggregate(plan.child, outputs[:count], outputs[count:])


def _named(exprs: Sequence[Expr], names: Sequence[str]) -> tuple[Named, ...]:
    return tuple(Named(expr, name) for expr, name in zip(exprs, names, strict=True))
