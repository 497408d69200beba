"""Translates Catalyst expressions to engine expressions: a module per family, and the function registry for all others."""

from kquery_spark.frontends.catalyst.expressions import (  # noqa: F401  each module registers its handlers
    aggregates,
    calendar_intervals,
    casts,
    conditional,
    csv_values,
    decimals,
    declined,
    evaluators,
    json_values,
    lambdas,
    months,
    predicates,
    special,
    values,
    variants,
)
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator

__all__ = ["EXPRESSIONS", "Translator"]
