"""Splits nodes of Spark's plan in two, so that an expression which falls back to Spark keeps no other with it."""

from kquery_spark.frontends.catalyst.splits.preaggregation import is_preaggregation
from kquery_spark.frontends.catalyst.splits.rewrite import SplitPlan, is_splittable, preaggregated, split_plan

__all__ = ["SplitPlan", "is_preaggregation", "is_splittable", "preaggregated", "split_plan"]
