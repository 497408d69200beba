"""Catalyst expressions as engine expressions, by family; the rest comes from the function registry."""

from kquery_spark.frontends.catalyst.expressions import (
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

__all__ = [
    "EXPRESSIONS",
    "Translator",
    "aggregates",
    "calendar_intervals",
    "casts",
    "conditional",
    "csv_values",
    "decimals",
    "declined",
    "evaluators",
    "json_values",
    "lambdas",
    "months",
    "predicates",
    "special",
    "values",
    "variants",
]
