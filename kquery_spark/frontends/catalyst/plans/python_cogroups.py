"""Python functions of pairs of groups: ``cogroup().applyInPandas`` and ``cogroup().applyInArrow``."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.python_functions import functions_of
from kquery_spark.frontends.catalyst.plans.python_tables import (
    CONDITION,
    column_of,
    grouped_columns,
    results_of,
    shown_columns,
)
from kquery_spark.frontends.catalyst.scope import Scope, check_key
from kquery_spark.logical import CogroupPython, LogicalPlan
from kquery_spark.logical.cogroup_python import CogroupSide
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python_call import PythonCall


@dataclass(frozen=True)
class _Side:
    """One side: its rows, the columns as the function sees them, and the offsets of keys and values among these."""

    plan: LogicalPlan
    side: CogroupSide
    shown: pa.Schema
    offsets: list[int]


@PLANS.handles("FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow", family="user code", partly=CONDITION)
def map_cogroups(node: CatalystNode, context: Context) -> Scope:
    """The rows that a function returns for each pair of groups."""
    functions = functions_of(context, "a cogrouped applyInPandas")
    udf = node.tree("functionExpr")
    command = functions.command(udf)
    left = _side(node.children[0], node["leftGroupingLen"], context)
    right = _side(node.children[1], node["rightGroupingLen"], context)
    for ours, theirs in zip(left.side.keys, right.side.keys, strict=True):
        check_key(ours.dtype)
        if ours.dtype != theirs.dtype:
            raise Unsupported("a cogroup by keys of different types runs in Spark")
    results, output = results_of(node, context)
    offsets = (*left.offsets, *right.offsets)
    call = PythonCall((command,), offsets, ("",) * len(offsets))
    code = functions.cogroups(udf["evalType"], call, left.shown, right.shown, results)
    text = f"{udf['name']}({', '.join(map(str, (*left.side.args, *right.side.args)))})"
    calls = PythonCalls(results, (text,), *code)
    return Scope(CogroupPython(left.plan, right.plan, left.side, right.side, calls), output)


def _side(node: CatalystNode, key_count: int, context: Context) -> _Side:
    child = context.feed(node)
    attributes = context.facts.output(node)
    ids = [attribute["exprId"] for attribute in attributes[:key_count]]
    columns, offsets = grouped_columns(attributes, ids)
    arguments = [column_of(child, column["exprId"]) for column in columns]
    keys = tuple(column_of(child, key) for key in ids)
    side = CogroupSide(keys, tuple(arguments))
    return _Side(child.plan, side, shown_columns(columns, arguments), offsets)
