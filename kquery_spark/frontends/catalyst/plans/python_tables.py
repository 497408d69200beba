"""Python functions of whole tables: of groups (``applyInPandas``) and of all batches of a task (``mapInPandas``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Named
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.python_functions import (
    CONDITION,
    require_python_functions,
    result_type,
)
from kquery_spark.frontends.catalyst.scope import PlanScope, check_key
from kquery_spark.logical import GroupPython, LogicalPlan, MapPython
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python.call import PythonCall
from kquery_spark.types.names import has_variants


@dataclass(frozen=True)
class GroupedRows:
    """The input of a function of groups: the rows, their keys, the arguments, and the columns that the function sees.

    offsets: the positions of keys and values among the arguments, in Spark's encoding.
    """

    plan: LogicalPlan
    keys: tuple[Column, ...]
    args: tuple[Column, ...]
    shown: pa.Schema
    offsets: tuple[int, ...]


@PLANS.handles("FlatMapGroupsInPandas", "FlatMapGroupsInArrow", family="user code", partly=CONDITION)
def map_groups(node: CatalystNode, context: Context) -> PlanScope:
    """The rows that a function returns for each group."""
    functions = require_python_functions(context, "applyInPandas")
    udf = node.tree("functionExpr")
    function = functions.function(udf)
    (child,) = node.children
    ids = [key["exprId"] for key in node.trees("groupingAttributes")]
    rows = grouped_rows(child, context.facts.output(child), ids, context)
    results, output = result_schema_and_output(node, context)
    call = PythonCall.unnamed(function, rows.offsets)
    code = functions.groups_evaluation(udf["evalType"], [call], rows.shown, results)
    keys = tuple(Named(column, column.name) for column in dict.fromkeys(rows.keys))
    calls = PythonCalls(results, (call_text(udf, rows.args),), *code)
    return PlanScope(GroupPython(rows.plan, keys, rows.args, calls, aggregates=False), output)


@PLANS.handles("MapInPandas", "MapInArrow", "PythonMapInArrow", family="user code", partly=CONDITION)
def map_batches(node: CatalystNode, context: Context) -> PlanScope:
    """The rows that a function returns for all batches of a task."""
    functions = require_python_functions(
        context, "mapInPandas" if node.cls == "MapInPandas" else "mapInArrow"
    )
    if node["isBarrier"] or node.fields.get("profile") is not None:
        raise Unsupported("a function with a barrier or a resource profile is not supported")
    udf = node.tree("functionExpr")
    function = functions.function(udf)
    child = context.subtree_or_handover(node.children[0])
    attributes = context.facts.output(node.children[0])
    arguments = _arguments(child, attributes)
    results, output = result_schema_and_output(node, context)
    call = PythonCall.unnamed(function, (0,))
    code = functions.batches_evaluation(udf["evalType"], [call], _shown_columns(attributes, context), results)
    calls = PythonCalls(results, (call_text(udf, arguments),), *code)
    return PlanScope(MapPython(child.plan, arguments, calls), output)


def grouped_rows(
    node: CatalystNode, attributes: Sequence[CatalystNode], ids: Sequence[int], context: Context
) -> GroupedRows:
    """Group the rows of a node by the keys with these ids. attributes: the node's output, in which the keys come first."""
    child = context.subtree_or_handover(node)
    columns, offsets = _grouped_columns(attributes, ids)
    arguments = _arguments(child, columns)
    keys = tuple(_column(child, key) for key in ids)
    for key in keys:
        check_key(key.dtype)
    return GroupedRows(child.plan, keys, arguments, _shown_columns(columns, context), offsets)


def _grouped_columns(
    attributes: Sequence[CatalystNode], keys: Sequence[int]
) -> tuple[list[CatalystNode], tuple[int, ...]]:
    """The columns that a function of groups receives, and the positions of keys and values in Spark's encoding.

    attributes: the keys, then the values, which may contain the keys again. keys: the ids of the keys. A key that is
    also a value is passed only once. The encoding is: the number of offsets that follow, the number of keys, the
    offsets of the keys, the offsets of the values. For the key k and the value v, the columns are (k, v) and the
    encoding is (3, 1, 0, 1); for the key k and the values (k, v), the columns are the same, and the encoding is
    (4, 1, 0, 0, 1).
    """
    values = attributes[len(keys) :]
    ids = [value["exprId"] for value in values]
    lone = [attribute for attribute, key in zip(attributes, keys, strict=False) if key not in ids]
    lone_ids = [attribute["exprId"] for attribute in lone]
    places = [len(lone) + ids.index(key) if key in ids else lone_ids.index(key) for key in keys]
    offsets = [len(keys), *places, *range(len(lone), len(lone) + len(values))]
    return [*lone, *values], (len(offsets), *offsets)


def call_text(udf: CatalystNode, arguments: Sequence[Column]) -> str:
    """The printed form of a call, for plans and messages."""
    return f"{udf['name']}({', '.join(map(str, arguments))})"


def _shown_columns(attributes: Sequence[CatalystNode], context: Context) -> pa.Schema:
    """The columns that a function sees, with Spark's names and types."""
    translate = context.translator({})
    return pa.schema(
        [
            pa.field(attribute["name"], translate.type(attribute["dataType"]), bool(attribute["nullable"]))
            for attribute in attributes
        ]
    )


def result_schema_and_output(
    node: CatalystNode, context: Context
) -> tuple[pa.Schema, tuple[tuple[int, str], ...]]:
    """The schema that a function returns, and the node's output."""
    translate = context.translator({})
    output = [(a["exprId"], context.names.fresh(a["name"])) for a in node.trees("output")]
    fields = [
        pa.field(name, result_type(attribute["dataType"], translate), bool(attribute["nullable"]))
        for attribute, (_, name) in zip(node.trees("output"), output, strict=True)
    ]
    return pa.schema(fields), tuple(output)


def _arguments(child: PlanScope, attributes: Sequence[CatalystNode]) -> tuple[Column, ...]:
    return tuple(_column(child, attribute["exprId"]) for attribute in attributes)


def _column(child: PlanScope, expr_id: int) -> Column:
    column = child.columns.get(expr_id)
    if column is None or has_variants(column.type):
        raise Unsupported(
            "a function that reads a column of a type that the engine does not know is not supported"
        )
    return column
