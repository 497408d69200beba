"""Aggregate with Python functions: Spark's arbitrary results over what functions give for each group."""

from __future__ import annotations

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Column
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.expressions.translator import AggregateSink
from kquery_spark.frontends.catalyst.plans.context import Context
from kquery_spark.frontends.catalyst.plans.python_functions import Calls
from kquery_spark.spark_bridge.plan_tree import CatalystNode, aggregate_filter
from kquery_spark.spark_bridge.python_kinds import GROUPED_AGGREGATE

_PYTHON = "PythonUDAF"


def calls_python(node: CatalystNode) -> bool:
    """Whether results of an Aggregate or of a Window are of Python functions."""
    items = node.trees("windowExpressions" if node.cls == "Window" else "aggregateExpressions")
    return any(part.cls == _PYTHON for item in items for part in item.walk())


def python_aggregate(node: CatalystNode) -> CatalystNode:
    """The function of an AggregateExpression of one; Unsupported unless it is called on all rows as they are."""
    if node["mode"] != "Complete" or node["isDistinct"] or aggregate_filter(node) is not None:
        raise Unsupported("a Python aggregate function of filtered or distinct rows runs in Spark")
    return node.child("aggregateFunction")


def evaluation_type(udf: CatalystNode) -> int:
    """Of an aggregate function."""
    return int(udf.fields.get("evalType", GROUPED_AGGREGATE))


class PythonAggregates(AggregateSink):
    """The Python functions of one Aggregate, all of one evaluation type, each with the name of its column."""

    def __init__(self, context: Context, calls: Calls, arguments: Translator) -> None:
        self._context = context
        self._calls = calls
        self._arguments = arguments
        self._kinds: set[int] = set()
        self.results: list[pa.Field] = []

    @property
    def kind(self) -> int:
        """The evaluation type."""
        if len(self._kinds) != 1:
            raise Unsupported("Python aggregate functions of several kinds at once run in Spark")
        return next(iter(self._kinds))

    @override
    def column(self, call: AggregateCall) -> Column:
        raise Unsupported("a Python aggregate function beside others runs in Spark")

    @override
    def python_column(self, node: CatalystNode) -> Column:
        udf = python_aggregate(node)
        self._kinds.add(evaluation_type(udf))
        self._calls.add(udf)
        name = self._context.names.fresh(str(udf["name"]))
        self.results.append(pa.field(name, self._arguments.type(udf["dataType"]), True))
        return Column(name, self.results[-1].type, True)
