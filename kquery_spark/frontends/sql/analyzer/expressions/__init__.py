"""Translates expressions of the syntax tree to engine expressions, with a handler per node class."""

from kquery_spark.frontends.sql.analyzer.expressions import (  # noqa: F401  each module registers its handlers
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
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer

__all__ = ["ExpressionAnalyzer"]
