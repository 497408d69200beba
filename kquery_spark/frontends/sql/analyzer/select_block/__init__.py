"""SELECT blocks, from FROM to ORDER BY."""

from kquery_spark.frontends.sql.analyzer.select_block.analyzer import SelectAnalyzer

__all__ = ["SelectAnalyzer"]
