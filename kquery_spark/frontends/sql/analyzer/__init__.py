"""The analyzer: syntax trees to logical plans, with Spark's rules for names, types and errors."""

from kquery_spark.frontends.sql.analyzer.catalog import Analyzed, SessionFacts
from kquery_spark.frontends.sql.analyzer.queries import analyze

__all__ = ["Analyzed", "SessionFacts", "analyze"]
