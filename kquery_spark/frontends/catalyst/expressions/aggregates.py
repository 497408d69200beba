"""Aggregate functions with their DISTINCT, FILTER and evaluation mode."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import AggregateCall, Expr, Literal
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.frontends.catalyst.tree import CatalystNode, aggregate_filter
from kquery_spark.functions.aggregate_registry import aggregate_for_catalyst
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t

# Where a typed aggregate keeps its state in Spark's buffers: nothing to do with its value.
_IGNORED = ("mutableAggBufferOffset", "inputAggBufferOffset", "evalMode", "evalContext")


@EXPRESSIONS.handles("AggregateExpression", family="aggregates", partly="aggregates in the registry")
def aggregate_expression(node: CatalystNode, translate: Translator) -> Expr:
    """An aggregate among the results of an Aggregate: the column that holds its value."""
    if translate.aggregates is None:
        raise Unsupported("an aggregate function at this place stays with Spark")
    return translate.aggregates.column(aggregate_call(node, translate))


def aggregate_call(node: CatalystNode, translate: Translator) -> AggregateCall:
    """The aggregate call of an AggregateExpression; its arguments are over the aggregate's input."""
    if node["mode"] != "Complete":
        raise Unsupported(f"a {node['mode']} aggregate stays with Spark")
    inner = translate.arguments if translate.arguments is not None else translate
    function = node.child("aggregateFunction")
    entry = aggregate_for_catalyst(function.cls)
    if entry is None:
        raise Unsupported(f"the aggregate function {function.cls.rsplit('.', 1)[-1]} stays with Spark")
    inner.check_fields(function, *_IGNORED)
    args = [inner(child) for child in function.children]
    if function.cls == "Count" and all(isinstance(a, Literal) and a.value is not None for a in args):
        args = []
    condition = aggregate_filter(node)
    mode = EvalMode.ANSI
    if function.cls in ("Sum", "Average") and not t.is_fractional(args[0].dtype):
        mode = inner.eval_mode(function)
    return AggregateCall.of(
        entry.name,
        *args,
        distinct=bool(node["isDistinct"]) and not entry.duplicate_free,
        condition=None if condition is None else inner(condition),
        mode=mode,
    )
