"""The analyzer: syntax trees to logical plans, with Spark's rules for names, types and errors."""

from kquery_spark.frontends.sql.analyzer.catalog import Analyzed, Catalog, SessionFacts
from kquery_spark.frontends.sql.analyzer.queries import QueryAnalyzer, analyze

__all__ = ["Analyzed", "Catalog", "QueryAnalyzer", "SessionFacts", "analyze"]
