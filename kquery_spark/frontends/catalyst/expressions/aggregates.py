"""Aggregate functions with their DISTINCT, FILTER and evaluation mode."""

from __future__ import annotations

from dataclasses import dataclass

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Call, Cast, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.parameters import check_parameters
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, AggregateSink, Translator
from kquery_spark.frontends.catalyst.expressions.values import as_literal
from kquery_spark.functions.aggregate_registry import (
    AggregateFunction,
    aggregate_for_catalyst,
    aggregate_function,
)
from kquery_spark.functions.hyperloglog import precision_of
from kquery_spark.functions.registry import EvalMode
from kquery_spark.spark_bridge.literal_values import scalar
from kquery_spark.spark_bridge.plan_tree import CatalystNode, aggregate_filter
from kquery_spark.types import names as t

# Where a typed aggregate keeps its state in Spark's buffers: nothing to do with its value.
_IGNORED = ("mutableAggBufferOffset", "inputAggBufferOffset")

REASONS = {
    "ApproximatePercentile": "the estimate of approx_percentile is Spark's own",
    "Mode": "of equally frequent values mode takes one by the order of Spark's own hash map",
    "CountMinSketchAgg": "sketches are Spark's own",
    "BloomFilterAggregate": "Bloom filters are Spark's own",
    "PythonUDAF": "a Python aggregate function runs in Spark",
    "ScalaUDAF": "a Scala or Java aggregate function runs in Spark",
    "ScalaAggregator": "a Scala or Java aggregate function runs in Spark",
}

# Their values depend on the order of rows, so they are Spark's where the query gives them one.
ORDERED = frozenset({"First", "Last", "CollectList", "ListAgg"})


@EXPRESSIONS.handles("AggregateExpression", family="aggregates", partly="aggregates in the registry")
def aggregate_expression(node: CatalystNode, translate: Translator) -> Expr:
    """An aggregate among the results of an Aggregate: the column that holds its value."""
    if translate.aggregates is None:
        raise Unsupported("an aggregate function at this place stays with Spark")
    if node.child("aggregateFunction").cls == "PivotFirst":
        return _pivot(node, translate, translate.aggregates)
    return translate.aggregates.column(aggregate_call(node, translate))


def _pivot(node: CatalystNode, translate: Translator, sink: AggregateSink) -> Expr:
    """The array that PIVOT takes its columns from: for each of its values the one row of the group that has it."""
    function = node.child("aggregateFunction")
    if node["mode"] != "Complete" or aggregate_filter(node) is not None or node["isDistinct"]:
        raise Unsupported("a PIVOT in phases, of filtered or of distinct rows stays with Spark")
    translate.check_fields(function, "pivotColumnValues", *_IGNORED)
    inner = translate.arguments if translate.arguments is not None else translate
    pivot, value = inner(function.child("pivotColumn")), inner(function.child("valueColumn"))
    if t.is_fractional(pivot.dtype):
        raise Unsupported("a PIVOT by floating-point values stays with Spark")
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


@dataclass(frozen=True)
class Aggregated:
    """What an aggregate function of Catalyst is to the engine."""

    entry: AggregateFunction
    args: tuple[Expr, ...]
    mode: EvalMode


def aggregate_call(node: CatalystNode, translate: Translator) -> AggregateCall:
    """The aggregate call of an AggregateExpression; its arguments are over the aggregate's input."""
    if node["mode"] != "Complete":
        raise Unsupported(f"a {node['mode']} aggregate stays with Spark")
    inner = translate.arguments if translate.arguments is not None else translate
    aggregate_parts = aggregated(node.child("aggregateFunction"), inner)
    condition = aggregate_filter(node)
    return AggregateCall.of(
        aggregate_parts.entry.name,
        *aggregate_parts.args,
        distinct=bool(node["isDistinct"]) and not aggregate_parts.entry.duplicate_free,
        condition=None if condition is None else inner(condition),
        mode=aggregate_parts.mode,
    )


def known_aggregate(cls: str) -> AggregateFunction:
    """The registry's entry for a Catalyst class."""
    entry = aggregate_for_catalyst(cls)
    if entry is None:
        raise Unsupported(
            REASONS.get(cls) or f"the aggregate function {cls.rsplit('.', 1)[-1]} stays with Spark"
        )
    return entry


def aggregated(function: CatalystNode, translate: Translator) -> Aggregated:
    """The registry's entry for an aggregate function, its arguments and its mode."""
    cls = function.cls
    entry = known_aggregate(cls)
    fixed = check_parameters(function, entry.parameters, entry.name)
    children = function.children
    if cls in ("First", "Last") and function["ignoreNulls"]:
        entry = aggregate_function(f"{entry.name}_ignore_nulls")
    picked = ("ignoreNulls",) if cls in ("First", "Last") else ()
    read = ("relativeSD",) if cls == "HyperLogLogPlusPlus" else ()
    translate.check_fields(function, *_IGNORED, *fixed, *picked, *read)
    if cls == "Percentile":
        children = _without_frequency(children)
    args = tuple(translate(child) for child in children)
    if cls == "Count" and all(isinstance(a, Literal) and a.value is not None for a in args):
        args = ()
    if cls == "HyperLogLogPlusPlus":
        error = float(function["relativeSD"])
        precision_of(error)
        args = (*args, Literal(error, t.DOUBLE))
    if cls == "Percentile":
        args = (_double(args[0], translate), args[1])
        if not isinstance(args[1], Literal) or args[1].dtype != t.DOUBLE:
            raise Unsupported("percentile with several percentages or one that varies stays with Spark")
    translate.check_version(function, entry.name, args)
    mode = EvalMode.ANSI
    if cls in ("Sum", "Average") and not t.is_fractional(args[0].dtype):
        mode = translate.eval_mode(function)
    return Aggregated(entry, args, mode)


def _without_frequency(children: tuple[CatalystNode, ...]) -> tuple[CatalystNode, ...]:
    """The arguments of a percentile that counts every row once."""
    frequency = children[2]
    if frequency.cls != "Literal" or frequency.fields.get("value") != "1":
        raise Unsupported("percentile with a frequency stays with Spark")
    return children[:2]


def _double(expr: Expr, translate: Translator) -> Expr:
    if expr.dtype == t.DOUBLE:
        return expr
    if not t.is_numeric(expr.dtype):
        raise Unsupported(f"percentile of {t.spark_name(expr.dtype)} stays with Spark")
    return Cast(expr, t.DOUBLE, EvalMode.ANSI, translate.time_zone)
