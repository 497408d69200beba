"""Python functions of whole tables: of groups (``applyInPandas``) and of all batches of a task (``mapInPandas``)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Named
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.python_functions import functions_of
from kquery_spark.frontends.catalyst.scope import Scope, check_key
from kquery_spark.logical import GroupPython, MapPython
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python_call import PythonCall

CONDITION = "deterministic functions without broadcast variables, of atomic types"


@PLANS.handles("FlatMapGroupsInPandas", "FlatMapGroupsInArrow", family="user code", partly=CONDITION)
def map_groups(node: CatalystNode, context: Context) -> Scope:
    """The rows that a function returns for each group."""
    functions = functions_of(context, "applyInPandas")
    udf = node.tree("functionExpr")
    command = functions.command(udf)
    child = context.feed(node.children[0])
    attributes = context.facts.output(node.children[0])
    keys = [key["exprId"] for key in node.trees("groupingAttributes")]
    columns, offsets = grouped_columns(attributes, keys)
    arguments = _arguments(child, columns)
    named = _keys(child, keys)
    results, output = results_of(node, context)
    call = PythonCall((command,), tuple(offsets), ("",) * len(offsets))
    code = functions.groups(udf["evalType"], [call], shown_columns(columns, arguments), results)
    calls = PythonCalls(results, (call_text(udf, arguments),), *code)
    return Scope(GroupPython(child.plan, named, tuple(arguments), calls, aggregates=False), output)


@PLANS.handles("MapInPandas", "MapInArrow", "PythonMapInArrow", family="user code", partly=CONDITION)
def map_batches(node: CatalystNode, context: Context) -> Scope:
    """The rows that a function returns for all batches of a task."""
    functions = functions_of(context, "mapInPandas" if node.cls == "MapInPandas" else "mapInArrow")
    if node["isBarrier"] or node.fields.get("profile") is not None:
        raise Unsupported("a function with a barrier or a resource profile runs in Spark")
    udf = node.tree("functionExpr")
    command = functions.command(udf)
    child = context.feed(node.children[0])
    attributes = context.facts.output(node.children[0])
    arguments = _arguments(child, attributes)
    results, output = results_of(node, context)
    call = PythonCall((command,), (0,), ("",))
    code = functions.batches(udf["evalType"], [call], shown_columns(attributes, arguments), results)
    calls = PythonCalls(results, (call_text(udf, arguments),), *code)
    return Scope(MapPython(child.plan, tuple(arguments), calls), output)


def grouped_columns(
    attributes: Sequence[CatalystNode], keys: Sequence[int]
) -> tuple[list[CatalystNode], list[int]]:
    """The columns that a function of groups gets, and the offsets of keys and values among them as Spark writes these.

    attributes: the keys first, then the values, among which the keys may be again; ``keys`` are ids.
    """
    values = attributes[len(keys) :]
    ids = [value["exprId"] for value in values]
    lone = [attribute for attribute, key in zip(attributes, keys, strict=False) if key not in ids]
    lone_ids = [attribute["exprId"] for attribute in lone]
    places = [len(lone) + ids.index(key) if key in ids else lone_ids.index(key) for key in keys]
    offsets = [len(keys), *places, *range(len(lone), len(lone) + len(values))]
    return [*lone, *values], [len(offsets), *offsets]


def call_text(udf: CatalystNode, arguments: Sequence[Column]) -> str:
    """A call in words."""
    return f"{udf['name']}({', '.join(map(str, arguments))})"


def shown_columns(attributes: Sequence[CatalystNode], arguments: Sequence[Column]) -> pa.Schema:
    """The columns as a function sees them, with Spark's names."""
    return pa.schema(
        [
            pa.field(attribute["name"], argument.dtype, bool(attribute["nullable"]))
            for attribute, argument in zip(attributes, arguments, strict=True)
        ]
    )


def results_of(node: CatalystNode, context: Context) -> tuple[pa.Schema, tuple[tuple[int, str], ...]]:
    """The schema that a function returns, and the node's output."""
    translate = context.translator({})
    output = [(a["exprId"], context.names.fresh(a["name"])) for a in node.trees("output")]
    fields = [
        pa.field(name, translate.type(attribute["dataType"]), bool(attribute["nullable"]))
        for attribute, (_, name) in zip(node.trees("output"), output, strict=True)
    ]
    return pa.schema(fields), tuple(output)


def _arguments(child: Scope, attributes: Sequence[CatalystNode]) -> list[Column]:
    return [column_of(child, attribute["exprId"]) for attribute in attributes]


def _keys(child: Scope, ids: Sequence[int]) -> tuple[Named, ...]:
    columns = [column_of(child, key) for key in dict.fromkeys(ids)]
    for column in columns:
        check_key(column.dtype)
    return tuple(Named(column, column.name) for column in dict.fromkeys(columns))


def column_of(child: Scope, expr_id: int) -> Column:
    """The column of an expression id."""
    column = child.columns.get(expr_id)
    if column is None:
        raise Unsupported(
            "a function that reads a column of a type that the engine does not know runs in Spark"
        )
    return column
