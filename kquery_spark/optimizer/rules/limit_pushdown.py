"""Limits move towards the scans."""

from __future__ import annotations

from kquery_spark.logical import Join, JoinKind, Limit, LogicalPlan, Projection, Scan, Union
from kquery_spark.logical.plan import with_new_children
from kquery_spark.sources.memory import local_source


def limit_pushdown(plan: LogicalPlan) -> LogicalPlan:
    """``Limit: 5`` over ``Union`` also limits each input to 5; through projections the limit moves whole.

    A left join gives at least one row for each row of its left side, so that side needs no more rows than the limit; the
    limit itself stays above. Limits above each other become one. A limit of no rows runs nothing of what is below it.
    """
    if isinstance(plan, Limit) and plan.count == 0:
        return Scan("no rows", local_source(plan.schema.empty_table()))
    plan = with_new_children(plan, [limit_pushdown(c) for c in plan.children])
    return _push(plan) if isinstance(plan, Limit) else plan


def _push(limit: Limit) -> LogicalPlan:
    child = limit.child
    rows = None if limit.count is None else limit.count + limit.offset
    match child:
        case Limit():
            return _push(_both(limit, child))
        case Projection():
            return Projection(_push(Limit(child.child, limit.count, limit.offset)), child.exprs)
        case Union() if rows is not None:
            inputs = tuple(_limited(one, rows) for one in child.inputs)
            return Limit(Union(inputs), limit.count, limit.offset)
        case Join(kind=JoinKind.LEFT) if rows is not None:
            joined = child.with_children([_limited(child.left, rows), child.right])
            return Limit(joined, limit.count, limit.offset)
    return limit


def _limited(plan: LogicalPlan, count: int) -> LogicalPlan:
    if isinstance(plan, Limit) and plan.count is not None and plan.count <= count:
        return plan
    return _push(Limit(plan, count))


def _both(outer: Limit, inner: Limit) -> Limit:
    counts = [] if outer.count is None else [outer.count]
    if inner.count is not None:
        counts.append(max(0, inner.count - outer.offset))
    return Limit(inner.child, min(counts) if counts else None, inner.offset + outer.offset)
