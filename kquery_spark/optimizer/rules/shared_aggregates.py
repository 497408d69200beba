"""Equal aggregations are written once, so that the planner can compute them once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kquery_spark.expr import Column, Expr, Named
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.expr.traverse import substitute
from kquery_spark.logical import Aggregate, Filter, Join, JoinKind, LogicalPlan, Projection, Scan, walk_plan
from kquery_spark.logical.join import JoinKey
from kquery_spark.logical.plan import with_new_children
from kquery_spark.logical.pruning import needed_filters


def shared_aggregates(plan: LogicalPlan) -> LogicalPlan:
    """Of two aggregations that differ in names of columns only, the second becomes a projection over the first.

    A CTE that is read twice is such a pair: each reading has columns of its own names. Both places then hold the same node.
    """
    if sum(isinstance(node, Aggregate) for node in walk_plan(plan)) < 2:
        return plan
    return _Sharing().visit(plan)


@dataclass(frozen=True)
class _Form:
    """A plan without names of its own; ``columns`` are the plan's output columns over it."""

    plan: LogicalPlan
    columns: dict[str, Expr]


class _Sharing:
    def __init__(self) -> None:
        self._first: dict[LogicalPlan, Aggregate] = {}

    def visit(self, plan: LogicalPlan) -> LogicalPlan:
        """The plan with every aggregation that has been seen before replaced."""
        form = _form(plan) if isinstance(plan, Aggregate) else None
        first = None if form is None else self._first.get(form.plan)
        if first is not None:
            names = zip(first.schema.names, plan.schema.names, strict=True)
            return Projection(first, tuple(Named(first.column(old), new) for old, new in names))
        plan = with_new_children(plan, [self.visit(c) for c in plan.children])
        if form is not None and isinstance(plan, Aggregate):
            self._first[form.plan] = plan
        return plan


def _form(plan: LogicalPlan) -> _Form | None:
    """The form of a plan; None where running it twice may differ, or for nodes it does not know."""
    if not all(map(is_deterministic, plan.expressions)):
        return None
    if isinstance(plan, Scan):
        return _scan_form(plan)
    forms = [form for form in map(_form, plan.children) if form is not None]
    if not forms or len(forms) < len(plan.children):
        return None
    match plan:
        case Join() if plan.kind is not JoinKind.EXISTENCE:
            return _joined(plan, *forms)
        case Projection() | Filter() | Aggregate():
            return _over_form(plan, forms[0])
    return None


def _scan_form(scan: Scan) -> _Form:
    """The scan without its name, its projection and filters that every row passes."""
    needed = needed_filters(scan.source, scan.source.splits(), scan.filters) if scan.filters else ()
    bare = replace(scan, table="", projection=None, filters=needed)
    return _Form(bare, {n: bare.column(n) for n in scan.schema.names})


def _over_form(plan: Projection | Filter | Aggregate, below: _Form) -> _Form:
    """The form of a node over that of its input."""
    if isinstance(plan, Projection):
        return _Form(below.plan, {e.name: substitute(e.expr, below.columns) for e in plan.exprs})
    if isinstance(plan, Filter):
        return _Form(Filter(below.plan, substitute(plan.condition, below.columns)), below.columns)
    keys = _numbered(plan.keys, below.columns, "key")
    calls = _numbered(plan.aggregates, below.columns, "call")
    outer = zip(plan.schema.names, (*keys, *calls), strict=True)
    return _Form(Aggregate(below.plan, keys, calls), {n: e.column for n, e in outer})


def _numbered(named: tuple[Named, ...], columns: dict[str, Expr], prefix: str) -> tuple[Named, ...]:
    return tuple(Named(substitute(e.expr, columns), f"{prefix}{i}") for i, e in enumerate(named))


def _joined(plan: Join, left: _Form, right: _Form) -> _Form:
    """Each side's columns by number, as both may be the same table."""
    sides, inside = [], {}
    for form, prefix in ((left, "left"), (right, "right")):
        exprs = tuple(Named(e, f"{prefix}{i}") for i, e in enumerate(form.columns.values()))
        sides.append(Projection(form.plan, exprs))
        inside.update({n: e.column for n, e in zip(form.columns, exprs, strict=True)})
    keys = tuple(
        JoinKey(substitute(k.left, inside), substitute(k.right, inside), k.null_safe) for k in plan.keys
    )
    condition = None if plan.condition is None else substitute(plan.condition, inside)
    joined = Join(sides[0], sides[1], plan.kind, keys, condition, plan.null_aware)
    numbers = {c.name: n for n, c in inside.items() if isinstance(c, Column)}
    return _Form(joined, {numbers[n]: joined.column(n) for n in joined.schema.names})
