"""Moves limits towards the scans."""

from __future__ import annotations

from kquery_spark.logical import Join, JoinKind, Limit, LogicalPlan, Projection, Scan, Union
from kquery_spark.logical.plan import with_new_children
from kquery_spark.sources.memory import local_source


def limit_pushdown(plan: LogicalPlan) -> LogicalPlan:
    """Push a limit below nodes for which the number of input rows that they need is known:

    Limit(Projection(x), 5)        ->  Projection(Limit(x, 5))
    Limit(Union(x, y), 5)          ->  Limit(Union(Limit(x, 5), Limit(y, 5)), 5)
    Limit(x LEFT JOIN y, 5)        ->  Limit(Limit(x, 5) LEFT JOIN y, 5)    -- every left row gives at least one row
    Limit(Limit(x, 10), 5)         ->  Limit(x, 5)
    Limit(x, 0)                    ->  an empty scan                        -- nothing of x runs
    """
    # Even a join or an aggregate below would be computed for nothing.
    if isinstance(plan, Limit) and plan.count == 0:
        return Scan("no rows", local_source(plan.schema.empty_table()))
    plan = with_new_children(plan, [limit_pushdown(c) for c in plan.children])
    return _push(plan) if isinstance(plan, Limit) else plan


def _push(limit: Limit) -> LogicalPlan:
    child = limit.child
    # The limit above skips the offset, so an input has to supply these rows as well.
    rows = None if limit.count is None else limit.count + limit.offset
    match child:
        case Limit():
            return _push(_merge(limit, child))
        case Projection():
            return Projection(_push(Limit(child.child, limit.count, limit.offset)), child.exprs)
        case Union() if rows is not None:
            inputs = tuple(_with_limit(plan, rows) for plan in child.inputs)
            return Limit(Union(inputs), limit.count, limit.offset)
        case Join(kind=JoinKind.LEFT) if rows is not None:
            joined = child.with_children([_with_limit(child.left, rows), child.right])
            return Limit(joined, limit.count, limit.offset)
    return limit


def _with_limit(plan: LogicalPlan, count: int) -> LogicalPlan:
    if isinstance(plan, Limit) and plan.count is not None and plan.count <= count:
        return plan
    return _push(Limit(plan, count))


def _merge(outer: Limit, inner: Limit) -> Limit:
    """Merge two limits: ``LIMIT 5 OFFSET 2`` over ``LIMIT 6 OFFSET 1`` is ``LIMIT 4 OFFSET 3``."""
    counts = [] if outer.count is None else [outer.count]
    if inner.count is not None:
        counts.append(max(0, inner.count - outer.offset))
    return Limit(inner.child, min(counts) if counts else None, inner.offset + outer.offset)
