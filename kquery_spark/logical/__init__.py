"""Logical plans: what to compute, one node a file, values that compare and print."""

from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.filter import Filter
from kquery_spark.logical.input import Input
from kquery_spark.logical.join import Join, JoinKind
from kquery_spark.logical.limit import Limit
from kquery_spark.logical.plan import LogicalPlan, format_plan, transform_plan, walk_plan
from kquery_spark.logical.projection import Projection
from kquery_spark.logical.scan import Scan
from kquery_spark.logical.sort import Sort
from kquery_spark.logical.union import Union

__all__ = [
    "Aggregate",
    "Filter",
    "Input",
    "Join",
    "JoinKind",
    "Limit",
    "LogicalPlan",
    "Projection",
    "Scan",
    "Sort",
    "Union",
    "format_plan",
    "transform_plan",
    "walk_plan",
]
