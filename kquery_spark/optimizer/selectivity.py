"""The share of rows that a condition is expected to let pass, by rules of thumb."""

from __future__ import annotations

from kquery_spark.expr import Call, Expr, InList
from kquery_spark.expr.properties import conjuncts
from kquery_spark.functions.registry import Function, function

_OTHER_FUNCTION_SELECTIVITY = 0.4
_OTHER_CONDITION_SELECTIVITY = 0.5
_MIN_SELECTIVITY = 0.001


def selectivity(condition: Expr) -> float:
    """Expected share of rows that pass; the terms of an AND are taken to be independent."""
    share = 1.0
    for term in conjuncts(condition):
        if isinstance(term, InList):
            share *= min(_of_function(function("eq")) * len(term.values), _OTHER_CONDITION_SELECTIVITY)
        elif isinstance(term, Call):
            share *= _of_function(term.entry)
        else:
            share *= _OTHER_CONDITION_SELECTIVITY
    return max(share, _MIN_SELECTIVITY)


def _of_function(entry: Function) -> float:
    return _OTHER_FUNCTION_SELECTIVITY if entry.selectivity is None else entry.selectivity
