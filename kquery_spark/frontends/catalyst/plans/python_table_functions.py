"""Python table functions: of each row (``LATERAL f(x)``), of one row, and of the partitions of a TABLE argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, SortKey
from kquery_spark.expr.traverse import substitute
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.python_functions import (
    PythonCallCollector,
    require_python_functions,
    result_type,
    unnamed,
)
from kquery_spark.frontends.catalyst.plans.sorts import sort_keys
from kquery_spark.frontends.catalyst.scope import PlanScope, check_key
from kquery_spark.logical import LogicalPlan, TablePython
from kquery_spark.logical.python_calls import PythonCalls
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.python.call import PythonCall
from kquery_spark.spark_bridge.python.functions import PythonFunctions, TableFunction
from kquery_spark.spark_bridge.python.kinds import BATCHED_TABLE
from kquery_spark.spark_bridge.python.table_state import has_terminate, keeps_state


@dataclass(frozen=True)
class _Rows:
    """The rows that a table function receives.

    computed: expressions for columns of Spark that ``plan`` lacks, by name. partition: as in ``TablePython``.
    """

    plan: LogicalPlan
    columns: Mapping[int, Column | None]
    output: tuple[tuple[int, str], ...] = ()
    partition: tuple[Expr, ...] | None = None
    order: tuple[SortKey, ...] = ()
    computed: Mapping[str, Expr] = field(default_factory=dict)


@PLANS.handles(
    *("BatchEvalPythonUDTF", "ArrowEvalPythonUDTF"),
    family="user code",
    partly="functions that keep no state between rows, or of one row, or of a TABLE argument's partitions",
)
def table_function(node: CatalystNode, context: Context) -> PlanScope:
    """Import the rows that a function returns, with those columns of the child that are still read."""
    functions = require_python_functions(context, "a Python table function")
    udtf = node.tree("udtf")
    function = functions.function(udtf)
    below = node.children[0]
    partitioned = _partitioning_node(below)
    rows = _partitions(below, partitioned, context) if partitioned else _unpartitioned_rows(below, context)
    calls = PythonCallCollector(context.translator(rows.columns), functions)
    offsets, names, shown = calls.arguments_of(udtf)
    called = functions.table_function(udtf, PythonCall((function,), offsets, names))
    _check_partitions(called, rows, functions)
    required = node.trees("requiredChildOutput")
    if rows.partition is not None and required:
        raise Unsupported("a Python table function of a TABLE argument with other columns is not supported")
    attributes = node.trees("resultAttrs")
    made = [context.names.fresh(attribute["name"]) for attribute in attributes]
    results = pa.schema(
        [
            pa.field(name, result_type(a["dataType"], calls.translate), bool(a["nullable"]))
            for name, a in zip(made, attributes, strict=True)
        ]
    )
    by_row = rows.partition is None
    code = functions.table_evaluation(called, by_row, unnamed(calls.types), results)
    arguments = tuple(substitute(argument, rows.computed) for argument in calls.arguments)
    text = f"{udtf['name']}({', '.join(shown)})"
    names_of = dict(rows.output)
    kept = tuple((attribute["exprId"], names_of[attribute["exprId"]]) for attribute in required)
    plan = TablePython(
        rows.plan,
        arguments,
        PythonCalls(results, (text,), *code),
        rows.partition,
        rows.order,
        tuple(dict.fromkeys(name for _, name in kept)),
    )
    return PlanScope(plan, (*kept, *zip((a["exprId"] for a in attributes), made, strict=True)))


def _partitioning_node(node: CatalystNode) -> CatalystNode | None:
    """Return the node by which Spark collects the rows of each partition of a TABLE argument; None if there is none."""
    below = node.children[0] if node.cls == "Project" else node
    if below.cls == "Sort" and not below["global"]:
        below = below.children[0]
    if below.cls == "Repartition":
        return below if below["numPartitions"] == 1 and below["shuffle"] else None
    return below if below.cls == "RepartitionByExpression" else None


def _unpartitioned_rows(node: CatalystNode, context: Context) -> _Rows:
    child = context.subtree_or_handover(node)
    is_one_row = node.cls == "OneRowRelation"
    return _Rows(child.plan, child.columns, child.output, () if is_one_row else None)


def _partitions(node: CatalystNode, partitioned: CatalystNode, context: Context) -> _Rows:
    """The rows of a TABLE argument, whose columns the top node puts into a struct."""
    child = context.subtree_or_handover(partitioned.children[0])
    translate = context.translator(child.columns)
    keys: tuple[Expr, ...] = ()
    if partitioned.cls == "RepartitionByExpression":
        keys = tuple(map(translate, partitioned.trees("partitionExpressions")))
    sort = node.children[0] if node.cls == "Project" else node
    order = sort_keys(sort.trees("order"), translate) if sort.cls == "Sort" else ()
    if order[: len(keys)] != tuple(map(SortKey, keys)):
        raise Unsupported(
            "a Python table function of rows that are partitioned but not sorted by keys is not supported"
        )
    for key in keys:
        check_key(key.dtype)
        if pa.types.is_floating(key.dtype):
            raise Unsupported("a Python table function partitioned by fractions is not supported")
    columns, computed = dict(child.columns), dict[str, Expr]()
    for item in node.trees("projectList") if node.cls == "Project" else ():
        value = translate(item)
        name = context.names.fresh(item["name"])
        columns[item["exprId"]] = Column(name, value.dtype, value.nullable)
        computed[name] = value
    return _Rows(child.plan, columns, (), keys, order, computed)


def _check_partitions(called: TableFunction, rows: _Rows, functions: PythonFunctions) -> None:
    """Raise Unsupported if a function's rows may depend on how Spark distributes its input to tasks."""
    handler, takes_batches = called.handler, called.call.eval_type == BATCHED_TABLE
    if bool(called.call.partition_indexes) != bool(rows.partition):
        raise Unsupported(
            "a Python table function of rows that are partitioned by other keys is not supported"
        )
    if takes_batches and rows.partition != ():
        raise Unsupported("an Arrow table function of more than one batch of rows is not supported")
    if rows.partition is None and has_terminate(handler):
        raise Unsupported(
            "a Python table function with a method terminate for each of Spark's partitions is not supported"
        )
    if rows.partition is None and keeps_state(handler):
        raise Unsupported("a Python table function that may keep state from row to row is not supported")
    if rows.partition and has_terminate(handler) and not functions.skips_empty_partitions:
        raise Unsupported(
            "a Python table function whose method terminate Spark calls without rows is not supported"
        )
