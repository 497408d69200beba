"""Every node passes up only the columns that are needed above it."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.expr import Named, columns_of
from kquery_spark.logical import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    Limit,
    LogicalPlan,
    Projection,
    Scan,
    Sort,
    Union,
    Window,
    WindowGroupLimit,
)
from kquery_spark.logical.join import JoinKind


def projection_pushdown(plan: LogicalPlan) -> LogicalPlan:
    """``Projection: #a`` over a scan of twenty columns makes the scan read ``projection=[a]``.

    The root keeps all its columns in their order.
    """
    return _prune(plan, set(plan.schema.names))


def _prune(plan: LogicalPlan, needed: set[str]) -> LogicalPlan:
    match plan:
        case Scan():
            names = [n for n in plan.schema.names if n in needed]
            return Scan(plan.table, plan.source, tuple(names), plan.filters)
        case Projection():
            kept = tuple(e for e in plan.exprs if e.name in needed)
            child = _prune(plan.child, columns_of(*(e.expr for e in kept)))
            if [e.name for e in kept] == child.schema.names and all(str(e) == f"#{e.name}" for e in kept):
                return child
            return Projection(child, kept)
        case Aggregate():
            kept = tuple(a for a in plan.aggregates if a.name in needed)
            reads = columns_of(*(e.expr for e in (*plan.keys, *kept)))
            return Aggregate(_prune(plan.child, reads), plan.keys, kept)
        case Filter():
            child = _prune(plan.child, needed | columns_of(plan.condition))
            return _trimmed(Filter(child, plan.condition), needed)
        case Limit():
            return plan.with_children([_prune(plan.child, needed)])
        case Sort():
            return _trimmed(
                Sort(_prune(plan.child, needed | columns_of(*plan.expressions)), plan.keys), needed
            )
        case Window():
            calls = tuple(c for c in plan.calls if c.name in needed)
            if not calls:
                return _prune(plan.child, needed)
            plan = replace(plan, calls=calls)
            child = _prune(plan.child, (needed - {c.name for c in calls}) | columns_of(*plan.expressions))
            return _trimmed(plan.with_children([child]), needed)
        case WindowGroupLimit():
            child = _prune(plan.child, needed | columns_of(*plan.expressions))
            return _trimmed(plan.with_children([child]), needed)
        case Expand():
            places = [i for i, n in enumerate(plan.names) if n in needed]
            plan = replace(
                plan,
                names=tuple(plan.names[i] for i in places),
                projections=tuple(tuple(p[i] for i in places) for p in plan.projections),
            )
            return plan.with_children([_prune(plan.child, columns_of(*plan.expressions))])
        case Generate():
            kept_names = tuple(n for n in plan.kept if n in needed)
            child = _prune(plan.child, set(kept_names) | columns_of(*plan.args))
            return _trimmed(replace(plan, child=child, required=kept_names), needed)
        case Join():
            reads = needed | columns_of(*plan.expressions)
            left = _prune(plan.left, reads & set(plan.left.schema.names))
            right = _prune(plan.right, reads & set(plan.right.schema.names))
            return _trimmed(plan.with_children([left, right]), needed)
        case Union():
            places = [i for i, n in enumerate(plan.schema.names) if n in needed]
            names = [plan.schema.names[i] for i in places]
            inputs = []
            for one in plan.inputs:
                wanted = [one.schema.names[i] for i in places]
                child = _prune(one, set(wanted))
                if child.schema.names != wanted:
                    child = Projection(child, tuple(Named(child.column(n), n) for n in wanted))
                inputs.append(child)
            if inputs[0].schema.names != names:
                raise AssertionError("a union is named by its first input")
            return Union(tuple(inputs))
    return (
        plan.with_children([_prune(c, needed | set(c.schema.names)) for c in plan.children])
        if plan.children
        else plan
    )


def _trimmed(plan: LogicalPlan, needed: set[str]) -> LogicalPlan:
    """Drop columns that only the node itself needed, so that they are not carried further up."""
    names = plan.schema.names
    if isinstance(plan, Join) and plan.kind is JoinKind.EXISTENCE:
        needed = needed | {plan.exists}
    kept = [n for n in names if n in needed]
    if len(kept) == len(names):
        return plan
    return Projection(plan, tuple(Named(plan.column(n), n) for n in kept))
