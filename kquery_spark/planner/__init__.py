"""The physical planner: turns an optimized logical plan into operators, with exchanges between stages."""

from kquery_spark.planner.planner import plan_query

__all__ = ["plan_query"]
