"""Finds equal aggregations and makes both places refer to the same node, so that the planner computes it once."""

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
    """Replace the second of two aggregations that differ only in column names by a projection over the first.

    A CTE that is read twice is such a pair, because Spark gives each copy new columns:

        1. Aggregate: groupExpr=[#k], aggregateExpr=[SUM(#v) AS s]            -> unchanged
        2. Aggregate: groupExpr=[#k_2], aggregateExpr=[SUM(#v_2) AS s_2]      -> Projection: #k AS k_2, #s AS s_2
                                                                                   (the first aggregate)

    To compare plans without regard to names, each is rewritten in a canonical form in which columns are numbered.
    """
    if sum(isinstance(node, Aggregate) for node in walk_plan(plan)) < 2:
        return plan
    return _Sharing().visit(plan)


@dataclass(frozen=True)
class _CanonicalForm:
    """A plan with canonical names. ``columns`` are the output columns of the original plan as expressions over it."""

    plan: LogicalPlan
    columns: dict[str, Expr]


class _Sharing:
    """One run of the rule over a plan. It remembers the first aggregation of each canonical form."""

    def __init__(self) -> None:
        self._first: dict[LogicalPlan, Aggregate] = {}

    def visit(self, plan: LogicalPlan) -> LogicalPlan:
        """Replace each aggregation that has occurred before. Works top-down, so the largest equal plan is replaced."""
        form = _canonical_form(plan) if isinstance(plan, Aggregate) else None
        first = None if form is None else self._first.get(form.plan)
        if first is not None:
            names = zip(first.schema.names, plan.schema.names, strict=True)
            return Projection(first, tuple(Named(first.column(old), new) for old, new in names))
        plan = with_new_children(plan, [self.visit(c) for c in plan.children])
        if form is not None and isinstance(plan, Aggregate):
            self._first[form.plan] = plan
        return plan


def _canonical_form(plan: LogicalPlan) -> _CanonicalForm | None:
    """Return the canonical form; None for plans that are not deterministic, and for other classes of nodes."""
    if not all(map(is_deterministic, plan.expressions)):
        return None
    if isinstance(plan, Scan):
        return _canonical_scan(plan)
    forms = [form for form in map(_canonical_form, plan.children) if form is not None]
    if not forms or len(forms) < len(plan.children):
        return None
    match plan:
        case Join() if plan.kind is not JoinKind.EXISTENCE:
            return _canonical_join(plan, *forms)
        case Projection() | Filter() | Aggregate():
            return _canonical_unary(plan, forms[0])
    return None


def _canonical_scan(scan: Scan) -> _CanonicalForm:
    """Drop what does not affect the rows: the table's name, the projection, and filters that every row passes."""
    needed = needed_filters(scan.source, scan.source.splits(), scan.filters) if scan.filters else ()
    bare = replace(scan, table="", projection=None, filters=needed)
    return _CanonicalForm(bare, {n: bare.column(n) for n in scan.schema.names})


def _canonical_unary(plan: Projection | Filter | Aggregate, below: _CanonicalForm) -> _CanonicalForm:
    """Return the form of a node whose input has the form ``below``. Projections become part of ``columns``."""
    if isinstance(plan, Projection):
        return _CanonicalForm(below.plan, {e.name: substitute(e.expr, below.columns) for e in plan.exprs})
    if isinstance(plan, Filter):
        return _CanonicalForm(Filter(below.plan, substitute(plan.condition, below.columns)), below.columns)
    keys = _number(plan.keys, below.columns, "key")
    calls = _number(plan.aggregates, below.columns, "call")
    outer = zip(plan.schema.names, (*keys, *calls), strict=True)
    return _CanonicalForm(Aggregate(below.plan, keys, calls), {n: e.column for n, e in outer})


def _number(named: tuple[Named, ...], columns: dict[str, Expr], prefix: str) -> tuple[Named, ...]:
    """Rename the expressions to ``key0``, ``key1``, ... and express them over the canonical input."""
    return tuple(Named(substitute(e.expr, columns), f"{prefix}{i}") for i, e in enumerate(named))


def _canonical_join(plan: Join, left: _CanonicalForm, right: _CanonicalForm) -> _CanonicalForm:
    """Number the columns of each side (``left0``, ``right0``, ...), because both sides may read the same table."""
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
    return _CanonicalForm(joined, {numbers[n]: joined.column(n) for n in joined.schema.names})
