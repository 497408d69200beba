"""INTERSECT and EXCEPT as joins and counts."""

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
    """Distinct: a null-safe semi or anti join, then groups. ALL: counts on both sides, then repetition."""
    left = plan.left
    names = [f"__right_{i}" for i in range(len(left.schema))]
    if plan.all:
        return _with_duplicates(plan)
    right = _renamed(plan.right, names)
    keys = tuple(
        JoinKey(left.column(a), right.column(b), null_safe=True)
        for a, b in zip(left.schema.names, names, strict=True)
    )
    kind = JoinKind.SEMI if plan.kind is SetKind.INTERSECT else JoinKind.ANTI
    joined = Join(left, right, kind, keys)
    return Aggregate(joined, tuple(Named(joined.column(n), n) for n in joined.schema.names), ())


def _renamed(plan: LogicalPlan, names: list[str]) -> Projection:
    return Projection(
        plan, tuple(Named(plan.column(o), n) for o, n in zip(plan.schema.names, names, strict=True))
    )


def _counted(plan: LogicalPlan, names: list[str], left: bool) -> Projection:
    exprs = [Named(plan.column(o), n) for o, n in zip(plan.schema.names, names, strict=True)]
    counts = [Named(_ONE if left else _ZERO, "__left"), Named(_ZERO if left else _ONE, "__right")]
    return Projection(plan, (*exprs, *counts))


def _with_duplicates(plan: SetOperation) -> LogicalPlan:
    names = plan.left.schema.names
    both = Union((_counted(plan.left, names, True), _counted(plan.right, names, False)))
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
