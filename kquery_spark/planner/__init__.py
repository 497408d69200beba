"""From a logical plan to a physical one: join strategy, partial and final aggregates, distribution, pruning."""

from kquery_spark.planner.planner import plan_query

__all__ = ["plan_query"]
