"""Distinguishes queries from other SQL statements, which ``spark.sql`` runs immediately."""

from __future__ import annotations

from pyspark.sql import SparkSession

from kquery_spark.errors import PlanError
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS


def is_query(spark: SparkSession, text: str) -> bool:
    """True for a query, False for other statements (INSERT, DROP TABLE ...). Raises Spark's error for invalid SQL."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        parser.parseQuery(text)
    except SPARK_ERRORS:
        parser.parsePlan(text)
        return False
    return True


def check_query(spark: SparkSession, text: str) -> None:
    """Raise PlanError for a statement that ``spark.sql`` would run immediately; Spark's error for invalid SQL."""
    if not is_query(spark, text):
        raise PlanError("only queries can be explained or verified; Spark would run this statement at once")
