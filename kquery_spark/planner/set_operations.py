"""Rewrites INTERSECT and EXCEPT as joins or as counts.

The DISTINCT forms are a null-safe semi join (INTERSECT) or anti join (EXCEPT) with a grouping above. The ALL forms count
each row on both sides and repeat it:

    left: x x x y     right: x x z
    Union with counters -> grouped:   x  left 3  right 2      y  left 1  right 0      z  left 0  right 1
    INTERSECT ALL: min(left, right) copies:   x x             EXCEPT ALL: left - right copies:   x y
"""

from __future__ import annotations

from kquery_spark.expr import AggregateCall, Call, Case, Column, Literal, Named
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Generate,
    Generator,
    Join,
    JoinKind,
    LogicalPlan,
    Projection,
    SetKind,
    SetOperation,
    Union,
)
from kquery_spark.logical.join import JoinKey
from kquery_spark.types import names as t

_ZERO, _ONE = Literal(0, t.LONG), Literal(1, t.LONG)


def lower_set_operation(plan: SetOperation) -> LogicalPlan:
    """Return an equivalent plan without the set operation."""
    left = plan.left
    names = [f"__right_{i}" for i in range(len(left.schema))]
    if plan.all:
        return _with_duplicates(plan)
    right = _rename_columns(plan.right, names)
    keys = tuple(
        JoinKey(left.column(a), right.column(b), null_safe=True)
        for a, b in zip(left.schema.names, names, strict=True)
    )
    kind = JoinKind.SEMI if plan.kind is SetKind.INTERSECT else JoinKind.ANTI
    joined = Join(left, right, kind, keys)
    return Aggregate(joined, tuple(Named(joined.column(n), n) for n in joined.schema.names), ())


def _rename_columns(plan: LogicalPlan, names: list[str]) -> Projection:
    return Projection(
        plan, tuple(Named(plan.column(o), n) for o, n in zip(plan.schema.names, names, strict=True))
    )


def _with_counters(plan: LogicalPlan, names: list[str], left: bool) -> Projection:
    """Append the columns ``__left`` and ``__right``: 1 for the side that the rows come from, 0 for the other."""
    exprs = [Named(plan.column(o), n) for o, n in zip(plan.schema.names, names, strict=True)]
    counts = [Named(_ONE if left else _ZERO, "__left"), Named(_ZERO if left else _ONE, "__right")]
    return Projection(plan, (*exprs, *counts))


def _with_duplicates(plan: SetOperation) -> LogicalPlan:
    """Rewrite an ALL form by counting: see the example at the top of this module."""
    names = plan.left.schema.names
    both = Union((_with_counters(plan.left, names, True), _with_counters(plan.right, names, False)))
    sums = [AggregateCall.of("sum", both.column(n)) for n in ("__left", "__right")]
    counted = Aggregate(
        both,
        tuple(Named(both.column(n), n) for n in names),
        (Named(sums[0], "__left"), Named(sums[1], "__right")),
    )
    left, right = (Column(n, t.LONG, True) for n in ("__left", "__right"))
    times = (
        Call.of("subtract", left, right)
        if plan.kind is SetKind.EXCEPT
        else Case(((Call.of("lt", left, right), left),), right)
    )
    repeated = Projection(counted, (*(Named(counted.column(n), n) for n in names), Named(times, "__times")))
    some = Filter(repeated, Call.of("gt", repeated.column("__times"), _ZERO))
    return Generate(some, Generator.REPLICATE, (some.column("__times"),), (), required=tuple(names))
