"""Translates expressions of the syntax tree to engine expressions, with a handler per node class."""

from kquery_spark.frontends.sql.analyzer.expressions import (
    access,
    calls,
    composed_calls,
    conditional,
    grouping,
    literals,
    names,
    operators,
    predicates,
    record_strings,
    subqueries,
)
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import EXPRESSIONS, ExpressionAnalyzer

__all__ = [
    "EXPRESSIONS",
    "ExpressionAnalyzer",
    "access",
    "calls",
    "composed_calls",
    "conditional",
    "grouping",
    "literals",
    "names",
    "operators",
    "predicates",
    "record_strings",
    "subqueries",
]
