"""The selectivity of conditions: the expected share of rows that pass, by rules of thumb.

Each function has a default selectivity (0.05 for equality). Terms of an AND are multiplied, as if they were independent.
"""

from __future__ import annotations

from kquery_spark.expr import Call, Expr, InList
from kquery_spark.expr.properties import conjuncts
from kquery_spark.functions.registry import Function, function

_OTHER_FUNCTION_SELECTIVITY = 0.4  # for functions without a selectivity of their own
# The selectivity of conditions that are not calls, such as a boolean column, and the maximum for IN.
_OTHER_CONDITION_SELECTIVITY = 0.5
_MIN_SELECTIVITY = 0.001  # many terms are rarely as independent as the product assumes


def selectivity(condition: Expr) -> float:
    """Return the expected share of rows for which the condition is TRUE, between 0.001 and 1."""
    share = 1.0
    for term in conjuncts(condition):
        if isinstance(term, InList):
            # IN is an OR of equalities, capped because values of long lists are often missing in the data.
            share *= min(
                _function_selectivity(function("eq")) * len(term.values), _OTHER_CONDITION_SELECTIVITY
            )
        elif isinstance(term, Call):
            share *= _function_selectivity(term.entry)
        else:
            share *= _OTHER_CONDITION_SELECTIVITY
    return max(share, _MIN_SELECTIVITY)


def _function_selectivity(entry: Function) -> float:
    return _OTHER_FUNCTION_SELECTIVITY if entry.selectivity is None else entry.selectivity
