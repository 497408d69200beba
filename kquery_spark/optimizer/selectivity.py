"""The share of rows that a condition is expected to let pass, by rules of thumb."""

from __future__ import annotations

from kquery_spark.expr import Call, Expr, InList
from kquery_spark.expr.properties import conjuncts

_BY_FUNCTION = {"eq": 0.05, "isnotnull": 1.0, "isnull": 0.05, "neq": 0.95} | dict.fromkeys(
    ("like", "contains", "startswith", "endswith", "rlike"), 0.1
)
_OF_OTHER_FUNCTIONS = 0.4
_OF_OTHER_CONDITIONS = 0.5
_LEAST = 0.001


def selectivity(condition: Expr) -> float:
    """Expected share of rows that pass; the terms of an AND are taken to be independent."""
    share = 1.0
    for term in conjuncts(condition):
        if isinstance(term, InList):
            share *= min(_BY_FUNCTION["eq"] * len(term.values), _OF_OTHER_CONDITIONS)
        elif isinstance(term, Call):
            share *= _BY_FUNCTION.get(term.function, _OF_OTHER_FUNCTIONS)
        else:
            share *= _OF_OTHER_CONDITIONS
    return max(share, _LEAST)
