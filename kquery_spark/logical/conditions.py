"""Splits join conditions into equi-join keys and a residual condition."""

from __future__ import annotations

from collections.abc import Iterable

from kquery_spark.expr import Call, Expr, columns_of
from kquery_spark.expr.properties import conjuncts
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical.join import JoinKey


def split_condition(
    condition: Expr | None, left_names: Iterable[str], right_names: Iterable[str]
) -> tuple[list[JoinKey], list[Expr]]:
    """Return the equalities between the two sides as keys, and the other terms of the AND in their original order.

    ``a.x = b.y AND a.z < b.w AND b.v = a.u`` gives the keys ``a.x = b.y`` and ``a.u = b.v`` and the residual ``a.z < b.w``.
    """
    left, right = set(left_names), set(right_names)
    keys: list[JoinKey] = []
    residual: list[Expr] = []
    for term in conjuncts(condition):
        key = as_key(term, left, right)
        if key is None:
            residual.append(term)
        elif key not in keys:
            keys.append(key)
    return keys, residual


def as_key(term: Expr, left: set[str], right: set[str]) -> JoinKey | None:
    """Return the term as a key whose left part reads only the left side; None if it is not such an equality."""
    if not (isinstance(term, Call) and term.entry.operator.equality):
        return None
    a, b = term.args
    reads_a, reads_b = columns_of(a), columns_of(b)
    if not reads_a or not reads_b or a.dtype != b.dtype:
        return None
    null_safe = term.logic is Logic.EQUAL_NULL_SAFE
    if reads_a <= left and reads_b <= right:
        return JoinKey(a, b, null_safe)
    if reads_a <= right and reads_b <= left:
        return JoinKey(b, a, null_safe)
    return None
