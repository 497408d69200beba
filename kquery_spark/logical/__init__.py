"""Logical plans describe what to compute.

Each node is a frozen dataclass in a file of its own. Two plans with the same structure are equal, and every plan can be
printed.
"""

from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.cogroup_python import CogroupPython
from kquery_spark.logical.eval_python import EvalPython
from kquery_spark.logical.expand import Expand
from kquery_spark.logical.filter import Filter
from kquery_spark.logical.generate import Generate, Generator
from kquery_spark.logical.group_python import GroupPython
from kquery_spark.logical.input import Input
from kquery_spark.logical.join import Join, JoinKind
from kquery_spark.logical.lateral_join import LateralJoin, LateralQuery
from kquery_spark.logical.limit import Limit
from kquery_spark.logical.map_python import MapPython
from kquery_spark.logical.origin import origin, origin_expression
from kquery_spark.logical.plan import LogicalPlan, format_plan, transform_plan, walk_plan
from kquery_spark.logical.projection import Projection
from kquery_spark.logical.record_decoders import provide_record_decoders
from kquery_spark.logical.recursion import LastRound, Recursion, RecursionLimits
from kquery_spark.logical.scan import Scan
from kquery_spark.logical.set_operation import SetKind, SetOperation
from kquery_spark.logical.single_row import SingleRow
from kquery_spark.logical.sort import Sort
from kquery_spark.logical.table_python import TablePython
from kquery_spark.logical.union import Union
from kquery_spark.logical.window import Window
from kquery_spark.logical.window_group_limit import WindowGroupLimit
from kquery_spark.logical.window_python import WindowPython

__all__ = [
    "Aggregate",
    "CogroupPython",
    "EvalPython",
    "Expand",
    "Filter",
    "Generate",
    "Generator",
    "GroupPython",
    "Input",
    "Join",
    "JoinKind",
    "LastRound",
    "LateralJoin",
    "LateralQuery",
    "Limit",
    "LogicalPlan",
    "MapPython",
    "Projection",
    "Recursion",
    "RecursionLimits",
    "Scan",
    "SetKind",
    "SetOperation",
    "SingleRow",
    "Sort",
    "TablePython",
    "Union",
    "Window",
    "WindowGroupLimit",
    "WindowPython",
    "format_plan",
    "origin",
    "origin_expression",
    "transform_plan",
    "walk_plan",
]

provide_record_decoders()
