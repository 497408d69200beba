"""Filters move towards the scans."""

from __future__ import annotations

from kquery_spark.expr import Column, Expr, Literal, columns_of, substitute
from kquery_spark.expr.properties import can_raise, conjunction, conjuncts, is_deterministic, is_harmless
from kquery_spark.logical import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    LogicalPlan,
    Projection,
    Scan,
    SetOperation,
    Sort,
    Union,
    Window,
    WindowGroupLimit,
)

_PRESERVES_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)
_PRESERVES_RIGHT = (JoinKind.INNER, JoinKind.RIGHT)


def predicate_pushdown(plan: LogicalPlan) -> LogicalPlan:
    """``Filter(Projection(Scan))`` becomes ``Projection(Scan; filters)``.

    An AND is split and each term goes as deep as it can, an OR is not. Only the row-preserving side of an outer join takes a
    filter from above. A term that can raise stays above joins, which might remove the row that raises.
    """
    return _push(plan, [])


def _push(plan: LogicalPlan, terms: list[Expr]) -> LogicalPlan:
    """The plan with ``terms`` applied to its output, as deep as possible."""
    match plan:
        case Filter():
            return _push(plan.child, conjuncts(plan.condition) + terms)
        case Projection():
            values = {e.name: e.expr for e in plan.exprs}
            down, stay = _split(terms, lambda e: all(_cheap(values[c]) for c in columns_of(e)))
            child = _push(plan.child, [substitute(e, values) for e in down])
            return _filtered(Projection(child, plan.exprs), stay)
        case Aggregate():
            keys = {k.name: k.expr for k in plan.keys}
            down, stay = _split(
                terms, lambda e: bool(columns_of(e)) and columns_of(e) <= set(keys) and not can_raise(e)
            )
            child = _push(plan.child, [substitute(e, keys) for e in down])
            return _filtered(plan.with_children([child]), stay)
        case Join():
            return _through_join(plan, terms)
        case Union():
            names = plan.schema.names
            inputs = []
            for one in plan.inputs:
                here = {n: one.column(m) for n, m in zip(names, one.schema.names, strict=True)}
                inputs.append(_push(one, [substitute(e, here) for e in terms]))
            return Union(tuple(inputs))
        case Sort():
            return plan.with_children([_push(plan.child, terms)])
        case Window() | WindowGroupLimit():
            # whole partitions go or stay, so what a window computes is not changed
            whole = {p.name for p in plan.partition if isinstance(p, Column)}
            down, stay = _split(
                terms, lambda e: bool(columns_of(e)) and columns_of(e) <= whole and not can_raise(e)
            )
            return _filtered(plan.with_children([_push(plan.child, down)]), stay)
        case Generate():
            kept = set(plan.kept)
            down, stay = _split(
                terms, lambda e: bool(columns_of(e)) and columns_of(e) <= kept and not can_raise(e)
            )
            return _filtered(plan.with_children([_push(plan.child, down)]), stay)
        case SetOperation():
            # equal rows pass or fail alike, so both sides can be filtered
            down, stay = _split(terms, is_harmless)
            there = {
                n: plan.right.column(m)
                for n, m in zip(plan.left.schema.names, plan.right.schema.names, strict=True)
            }
            sides = [_push(plan.left, down), _push(plan.right, [substitute(e, there) for e in down])]
            return _filtered(plan.with_children(sides), stay)
        case Scan():
            scannable, rest = _split(terms, lambda e: bool(columns_of(e)) and is_deterministic(e))
            if not scannable:
                return _filtered(plan, rest)
            return _filtered(
                Scan(plan.table, plan.source, plan.projection, plan.filters + tuple(scannable)), rest
            )
    return _filtered(
        plan.with_children([_push(c, []) for c in plan.children]) if plan.children else plan, terms
    )


def _through_join(plan: Join, terms: list[Expr]) -> LogicalPlan:
    left_names, right_names = set(plan.left.schema.names), set(plan.right.schema.names)
    left: list[Expr] = []
    right: list[Expr] = []
    stay: list[Expr] = []
    for term in terms:
        names = columns_of(term)
        movable = names and is_harmless(term)
        if movable and names <= left_names and plan.kind in _PRESERVES_LEFT:
            left.append(term)
        elif movable and names <= right_names and plan.kind in _PRESERVES_RIGHT:
            right.append(term)
        else:
            stay.append(term)
    condition: list[Expr] = []
    for term in conjuncts(plan.condition):
        names = columns_of(term)
        movable = names and is_harmless(term)
        if movable and names <= left_names and plan.kind in (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI):
            left.append(term)
        elif (
            movable
            and names <= right_names
            and plan.kind not in (JoinKind.RIGHT, JoinKind.FULL)
            and not plan.null_aware
        ):
            right.append(term)
        else:
            condition.append(term)
    joined = Join(
        _push(plan.left, left),
        _push(plan.right, right),
        plan.kind,
        plan.keys,
        conjunction(condition),
        plan.null_aware,
        plan.exists,
    )
    return _filtered(joined, stay)


def _split(terms: list[Expr], test: object) -> tuple[list[Expr], list[Expr]]:
    down = [e for e in terms if test(e)]  # type: ignore[operator]
    return down, [e for e in terms if e not in down]


def _cheap(expr: Expr) -> bool:
    """Whether repeating the expression in a pushed filter costs nothing and changes nothing."""
    return isinstance(expr, Column | Literal) or is_harmless(expr)


def _filtered(plan: LogicalPlan, terms: list[Expr]) -> LogicalPlan:
    condition = conjunction(terms)
    return plan if condition is None else Filter(plan, condition)
