"""Aggregate functions with their DISTINCT, FILTER and evaluation mode."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Call, Expr
from kquery_spark.frontends.catalyst.expressions.aggregate_functions import IGNORED_FIELDS, aggregated
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, AggregateSink, Translator
from kquery_spark.frontends.catalyst.expressions.values import as_literal
from kquery_spark.spark_bridge.plan.literal_values import scalar
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode, aggregate_filter
from kquery_spark.types import names as t


@EXPRESSIONS.handles("AggregateExpression", family="aggregates", partly="aggregates in the registry")
def aggregate_expression(node: CatalystNode, translate: Translator) -> Expr:
    """Translate an aggregate call in the results of an Aggregate to the column with its value."""
    if translate.aggregates is None:
        raise Unsupported("an aggregate function at this place is not supported")
    if node.child("aggregateFunction").cls == "PythonUDAF":
        return translate.aggregates.python_column(node)
    if node.child("aggregateFunction").cls == "PivotFirst":
        return _pivot(node, translate, translate.aggregates)
    return translate.aggregates.column(aggregate_call(node, translate))


def _pivot(node: CatalystNode, translate: Translator, sink: AggregateSink) -> Expr:
    """Translate PivotFirst, an array with one element per pivot value, which comes from the group's row with this value."""
    function = node.child("aggregateFunction")
    if node["mode"] != "Complete" or aggregate_filter(node) is not None or node["isDistinct"]:
        raise Unsupported("a PIVOT in phases, of filtered or of distinct rows is not supported")
    translate.check_fields(function, "pivotColumnValues", *IGNORED_FIELDS)
    pivot, value = (
        translate.for_arguments(function.child("pivotColumn")),
        translate.for_arguments(function.child("valueColumn")),
    )
    if t.is_fractional(pivot.dtype):
        raise Unsupported("a PIVOT by floating-point values is not supported")
    pivot_values = translate.facts.constants(function, "pivotColumnValues", pivot.dtype)
    calls = [
        AggregateCall.of(
            "first_ignore_nulls",
            value,
            condition=Call.of("eq_null_safe", pivot, as_literal(scalar(x, pivot.dtype))),
        )
        for x in pivot_values
    ]
    return Call.of("array", *(sink.column(call) for call in calls))


def aggregate_call(node: CatalystNode, translate: Translator) -> AggregateCall:
    """The aggregate call of an AggregateExpression; its arguments are over the aggregate's input."""
    if node["mode"] != "Complete":
        raise Unsupported(f"a {node['mode']} aggregate is not supported")
    aggregate_parts = aggregated(node.child("aggregateFunction"), translate.for_arguments)
    condition = aggregate_filter(node)
    return AggregateCall.of(
        aggregate_parts.entry.name,
        *aggregate_parts.args,
        distinct=bool(node["isDistinct"]) and not aggregate_parts.entry.duplicate_free,
        condition=None if condition is None else translate.for_arguments(condition),
        mode=aggregate_parts.mode,
    )
