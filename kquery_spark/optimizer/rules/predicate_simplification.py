"""Conditions in a form that other rules can use."""

from __future__ import annotations

from kquery_spark.expr import Call, Expr, InList, Literal, transform
from kquery_spark.expr.properties import can_raise, conjunction, conjuncts, is_deterministic
from kquery_spark.logical import Filter, Join, LogicalPlan, Projection, transform_plan
from kquery_spark.logical.plan import rewrite_expressions
from kquery_spark.types import names as t

_OPPOSITE = {"eq": "neq", "neq": "eq", "lt": "gteq", "gteq": "lt", "gt": "lteq", "lteq": "gt"}


def predicate_simplification(plan: LogicalPlan) -> LogicalPlan:
    """``(#a = #b AND #x) OR (#a = #b AND #y)`` becomes ``#a = #b AND (#x OR #y)``.

    Also: NOT over a comparison is the opposite comparison, NOT NOT x is x, repeated terms count once, an OR of equalities
    with one column is an IN, and a filter that is always true is gone. Terms that can raise keep their places.
    """
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
    if inner.function in ("isnull", "isnotnull"):
        return Call.of("isnotnull" if inner.function == "isnull" else "isnull", *inner.args)
    if inner.function in _OPPOSITE:
        return Call.of(_OPPOSITE[inner.function], *inner.args)
    return expr


def _either(expr: Call) -> Expr:
    terms = _disjuncts(expr)
    if any(can_raise(x) or not is_deterministic(x) for x in terms):
        return expr
    terms = _distinct(terms)
    if any(_is(x, True) for x in terms):
        return Literal(True, t.BOOL)
    terms = _as_in([x for x in terms if not _is(x, False)] or [Literal(False, t.BOOL)])
    if len(terms) == 1:
        return terms[0]
    sides = [conjuncts(x) for x in terms]
    shared = [x for x in sides[0] if all(x in side for side in sides[1:])]
    rests = [conjunction([x for x in side if x not in shared]) for side in sides]
    if not shared:
        return _disjunction(terms)
    if any(rest is None for rest in rests):
        return conjunction(shared) or expr
    return conjunction([*shared, _disjunction(_as_in([r for r in rests if r is not None]))]) or expr


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
    values: dict[Expr, list[Literal]] = {}
    for term in terms:
        found = _equals(term)
        if found is not None:
            values.setdefault(found[0], []).extend(found[1])
    result: list[Expr] = []
    done: set[Expr] = set()
    for term in terms:
        found = _equals(term)
        if found is None or len(values[found[0]]) == len(found[1]):
            result.append(term)
        elif found[0] not in done:
            done.add(found[0])
            result.append(InList(found[0], tuple(dict.fromkeys(values[found[0]]))))
    return result


def _equals(term: Expr) -> tuple[Expr, tuple[Literal, ...]] | None:
    if isinstance(term, InList):
        return term.child, term.values
    if isinstance(term, Call) and term.function == "eq":
        for a, b in (term.args, term.args[::-1]):
            plain = isinstance(b, Literal) and a.dtype == b.dtype and not t.is_nested(a.dtype)
            if plain and isinstance(b, Literal) and not isinstance(a, Literal) and b.value == b.value:
                return a, (b,)
    return None


def _distinct(terms: list[Expr]) -> list[Expr]:
    return [x for i, x in enumerate(terms) if x not in terms[:i] or not is_deterministic(x)]


def _is(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Literal) and expr.value is value
