"""The form of conditions that rules and decorrelation know: no NOT over comparisons, common terms of an OR in front."""

from __future__ import annotations

from kquery_spark.expr import Call, Expr, InList, Literal, transform
from kquery_spark.expr.properties import can_raise, chain, conjunction, conjuncts, is_deterministic
from kquery_spark.logical import Filter, Join, LogicalPlan, Projection, transform_plan
from kquery_spark.logical.plan import rewrite_expressions
from kquery_spark.types import names as t


def with_normal_conditions(plan: LogicalPlan) -> LogicalPlan:
    """The plan with its conditions in that form; terms that can raise keep their positions."""
    return transform_plan(plan, _node)


def _node(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, Filter | Join | Projection):
        return node
    changed = rewrite_expressions(node, lambda e: transform(e, _simplify))
    if isinstance(changed, Filter):
        terms = [x for x in _distinct(conjuncts(changed.condition)) if not _is(x, True)]
        condition = conjunction(terms)
        if condition is None:
            return changed.child
        if condition != changed.condition:
            return Filter(changed.child, condition)
    return changed


def _simplify(expr: Expr) -> Expr:
    if not isinstance(expr, Call):
        return expr
    match expr.function:
        case "not":
            return _negated(expr)
        case "or":
            return _either(expr)
        case "and":
            left, right = expr.args
            return left if left == right and is_deterministic(left) else expr
    return expr


def _negated(expr: Call) -> Expr:
    inner = expr.args[0]
    if isinstance(inner, Literal):
        return Literal(None if inner.value is None else not inner.value, t.BOOL)
    if not isinstance(inner, Call):
        return expr
    if inner.function == "not":
        return inner.args[0]
    opposite = inner.entry.operator.opposite
    return Call.of(opposite, *inner.args) if opposite else expr


def _either(expr: Call) -> Expr:
    terms = _disjuncts(expr)
    if any(can_raise(x) or not is_deterministic(x) for x in terms):
        return expr
    terms = _distinct(terms)
    if any(_is(x, True) for x in terms):
        return Literal(True, t.BOOL)
    terms = _as_in([x for x in terms if not _is(x, False)] or [Literal(False, t.BOOL)])
    return terms[0] if len(terms) == 1 else _factored(terms)


def _factored(terms: list[Expr]) -> Expr:
    """``(a AND x) OR (a AND y)`` as ``a AND (x OR y)``, and ``a OR (a AND x)`` as ``a``."""
    sides = [conjuncts(x) for x in terms]
    shared = [x for x in sides[0] if all(x in side for side in sides[1:])]
    if not shared:
        return _disjunction(terms)
    own = [_without(side, shared) for side in sides]
    differing = [x for x in own if x is not None]
    if len(differing) == len(own):
        shared.append(_disjunction(_as_in(differing)))
    return chain("and", shared)


def _without(terms: list[Expr], shared: list[Expr]) -> Expr | None:
    """The conjunction of the terms that are not shared."""
    return conjunction([x for x in terms if x not in shared])


def _disjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call) and expr.function == "or":
        return _disjuncts(expr.args[0]) + _disjuncts(expr.args[1])
    return [expr]


def _disjunction(terms: list[Expr]) -> Expr:
    result = terms[0]
    for term in terms[1:]:
        result = Call.of("or", result, term)
    return result


def _as_in(terms: list[Expr]) -> list[Expr]:
    """``a = 1 OR a IN (2, 3)`` as one IN where the first of them stood."""
    tests = [_membership(term) for term in terms]
    values: dict[Expr, list[Literal]] = {}
    for test in tests:
        if test is not None:
            values.setdefault(test[0], []).extend(test[1])
    merged: list[Expr] = []
    done: set[Expr] = set()
    for term, test in zip(terms, tests, strict=True):
        if test is None or len(values[test[0]]) == len(test[1]):
            merged.append(term)
        elif test[0] not in done:
            done.add(test[0])
            merged.append(InList(test[0], tuple(dict.fromkeys(values[test[0]]))))
    return merged


def _membership(term: Expr) -> tuple[Expr, tuple[Literal, ...]] | None:
    """The expression that a term compares with values, and these."""
    if isinstance(term, InList):
        return term.child, term.values
    if isinstance(term, Call) and term.function == "eq":
        for tested, value in (term.args, term.args[::-1]):
            if isinstance(value, Literal) and _may_be_in_list(tested, value):
                return tested, (value,)
    return None


def _may_be_in_list(tested: Expr, value: Literal) -> bool:
    """Whether an equality may become an IN: of the same plain type, and no NaN."""
    if isinstance(tested, Literal) or tested.dtype != value.dtype or t.is_nested(tested.dtype):
        return False
    return bool(value.value == value.value)


def _distinct(terms: list[Expr]) -> list[Expr]:
    seen: set[Expr] = set()
    distinct = []
    for term in terms:
        if term not in seen or not is_deterministic(term):
            distinct.append(term)
        seen.add(term)
    return distinct


def _is(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Literal) and expr.value is value
