"""The names that Spark gives columns without an alias: the expression, printed in Spark's own way."""

from kquery_spark.frontends.sql.analyzer.naming.column_names import column_name
from kquery_spark.frontends.sql.analyzer.naming.context import NamingContext

__all__ = ["NamingContext", "column_name"]
