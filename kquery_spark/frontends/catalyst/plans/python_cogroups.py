"""Python functions of pairs of groups: ``cogroup().applyInPandas`` and ``cogroup().applyInArrow``."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.python_functions import CONDITION, require_python_functions
from kquery_spark.frontends.catalyst.plans.python_tables import (
    GroupedRows,
    call_text,
    grouped_rows,
    result_schema_and_output,
)
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.logical import CogroupPython
from kquery_spark.logical.cogroup_python import CogroupSide
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python.call import PythonCall


@PLANS.handles("FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow", family="user code", partly=CONDITION)
def map_cogroups(node: CatalystNode, context: Context) -> PlanScope:
    """The rows that a function returns for each pair of groups."""
    functions = require_python_functions(context, "a cogrouped applyInPandas")
    udf = node.tree("functionExpr")
    function = functions.function(udf)
    left = _rows(node.children[0], node["leftGroupingLen"], context)
    right = _rows(node.children[1], node["rightGroupingLen"], context)
    if [key.dtype for key in left.keys] != [key.dtype for key in right.keys]:
        raise Unsupported("a cogroup by keys of different types is not supported")
    results, output = result_schema_and_output(node, context)
    call = PythonCall.unnamed(function, (*left.offsets, *right.offsets))
    code = functions.cogroups_evaluation(udf["evalType"], call, left.shown, right.shown, results)
    calls = PythonCalls(results, (call_text(udf, (*left.args, *right.args)),), *code)
    sides = CogroupSide(left.keys, left.args), CogroupSide(right.keys, right.args)
    return PlanScope(CogroupPython(left.plan, right.plan, *sides, calls), output)


def _rows(node: CatalystNode, key_count: int, context: Context) -> GroupedRows:
    attributes = context.facts.output(node)
    return grouped_rows(node, attributes, [key["exprId"] for key in attributes[:key_count]], context)
