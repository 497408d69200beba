"""Physical operators: each pulls batches from its children and yields batches."""

from kquery_spark.physical.aggregates.phase import Phase
from kquery_spark.physical.joins.build_side import BuildSide
from kquery_spark.physical.operators.aggregate import AggregateExec
from kquery_spark.physical.operators.base import Metrics, PhysicalPlan, TaskContext
from kquery_spark.physical.operators.cogroup_python import CogroupPythonExec
from kquery_spark.physical.operators.eval_python import EvalPythonExec
from kquery_spark.physical.operators.exchange import ExchangeExec, Partitioning, ReadExec
from kquery_spark.physical.operators.expand import ExpandExec
from kquery_spark.physical.operators.filter import FilterExec
from kquery_spark.physical.operators.generate import GenerateExec
from kquery_spark.physical.operators.group_python import GroupPythonExec
from kquery_spark.physical.operators.grouping_sets import GroupingSetsExec
from kquery_spark.physical.operators.join import JoinExec
from kquery_spark.physical.operators.limit import LimitExec
from kquery_spark.physical.operators.map_python import MapPythonExec
from kquery_spark.physical.operators.projection import ProjectionExec
from kquery_spark.physical.operators.recursion import LastRoundExec, RecursionExec
from kquery_spark.physical.operators.replicate import ReplicateExec
from kquery_spark.physical.operators.scan import ScanExec
from kquery_spark.physical.operators.single_row import SingleRowExec
from kquery_spark.physical.operators.sort import SortExec
from kquery_spark.physical.operators.table_python import TablePythonExec
from kquery_spark.physical.operators.union import UnionExec
from kquery_spark.physical.operators.window import WindowExec
from kquery_spark.physical.operators.window_group_limit import WindowGroupLimitExec
from kquery_spark.physical.operators.window_python import WindowPythonExec

__all__ = [
    "AggregateExec",
    "BuildSide",
    "CogroupPythonExec",
    "EvalPythonExec",
    "ExchangeExec",
    "ExpandExec",
    "FilterExec",
    "GenerateExec",
    "GroupPythonExec",
    "GroupingSetsExec",
    "JoinExec",
    "LastRoundExec",
    "LimitExec",
    "MapPythonExec",
    "Metrics",
    "Partitioning",
    "Phase",
    "PhysicalPlan",
    "ProjectionExec",
    "ReadExec",
    "RecursionExec",
    "ReplicateExec",
    "ScanExec",
    "SingleRowExec",
    "SortExec",
    "TablePythonExec",
    "TaskContext",
    "UnionExec",
    "WindowExec",
    "WindowGroupLimitExec",
    "WindowPythonExec",
]
