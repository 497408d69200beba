"""Splits nodes of Spark's plan in two, so that an expression that falls back to Spark does not take others with it."""

from kquery_spark.frontends.catalyst.splits.rewrite import SplitPlan, is_splittable, split_plan

__all__ = ["SplitPlan", "is_splittable", "split_plan"]
