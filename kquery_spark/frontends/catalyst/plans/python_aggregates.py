"""Aggregate with Python functions: Spark's results are expressions over the results of functions for each group."""

from __future__ import annotations

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Column
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.expressions.translator import AggregateSink
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.plans.python_functions import PythonCallCollector, result_type
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode, aggregate_filter
from kquery_spark.spark_bridge.python.functions import PythonFunctions
from kquery_spark.spark_bridge.python.kinds import GROUPED_AGGREGATE

PYTHON = "PythonUDAF"


def calls_python(node: CatalystNode) -> bool:
    """Return whether an Aggregate or a Window calls Python functions."""
    items = node.trees("windowExpressions" if node.cls == "Window" else "aggregateExpressions")
    return any(part.cls == PYTHON for item in items for part in item.walk())


class AggregateCalls(PythonCallCollector):
    """The calls of grouped aggregate functions of one node, all of one evaluation type, each with its column."""

    def __init__(self, context: Context, translate: Translator, functions: PythonFunctions) -> None:
        super().__init__(translate, functions)
        self._names = context.names
        self._eval_types: set[int] = set()
        self.results: list[pa.Field] = []

    @property
    def eval_type(self) -> int:
        """The evaluation type; raises Unsupported if the calls have different types."""
        if len(self._eval_types) != 1:
            raise Unsupported("Python aggregate functions of several kinds at once are not supported")
        return next(iter(self._eval_types))

    def column(self, node: CatalystNode, name: str) -> Column:
        """The column for an AggregateExpression, with a name like ``name``; Unsupported if it has DISTINCT or FILTER."""
        if node["mode"] != "Complete" or node["isDistinct"] or aggregate_filter(node) is not None:
            raise Unsupported("a Python aggregate function of filtered or distinct rows is not supported")
        udf = node.child("aggregateFunction")
        self._eval_types.add(int(udf.fields.get("evalType", GROUPED_AGGREGATE)))
        self.add(udf)
        column = Column(self._names.fresh(name), result_type(udf["dataType"], self.translate), True)
        self.results.append(pa.field(column.name, column.dtype, True))
        return column


class PythonAggregates(AggregateSink):
    """Translates the results of an Aggregate in which all functions are Python functions."""

    def __init__(self, calls: AggregateCalls) -> None:
        self._calls = calls

    @override
    def column(self, call: AggregateCall) -> Column:
        raise Unsupported("a Python aggregate function together with other aggregates is not supported")

    @override
    def python_column(self, node: CatalystNode) -> Column:
        return self._calls.column(node, str(node.child("aggregateFunction")["name"]))
