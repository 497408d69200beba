"""Sums and averages of short decimals, which Spark's optimizer rewrites to sums of longs with their unscaled values."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import AggregateCall, Call, Expr
from kquery_spark.frontends.catalyst.expressions.aggregates import aggregate_call
from kquery_spark.frontends.catalyst.expressions.translator import EXPRESSIONS, Translator
from kquery_spark.functions.registry import EvalMode
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t


@EXPRESSIONS.handles("MakeDecimal", family="decimals")
def make_decimal(node: CatalystNode, translate: Translator) -> Expr:
    """Translate a conversion of a long to a decimal; over a sum of unscaled values, it is the sum of the decimals."""
    target = t.decimal(node["precision"], node["scale"])
    child = node.child("child")
    column = _sum_of_digits(child, target, translate)
    if column is not None:
        return column
    mode = EvalMode.TRY if node["nullOnOverflow"] else EvalMode.ANSI
    return Call.of("make_decimal", translate(child), mode=mode, dtype=target)


def _sum_of_digits(child: CatalystNode, target: pa.DataType, translate: Translator) -> Expr | None:
    """The column with the sum of decimals whose unscaled values ``child`` adds up; None if its type is not ``target``."""
    if child.cls == "AggregateExpression" and translate.aggregates is not None:
        call = aggregate_call(child, translate)
        if child.children[0].cls == "Sum" and child.children[0].children[0].cls == "UnscaledValue":
            inner = translate.for_arguments(child.children[0].children[0].children[0])
            whole = AggregateCall.of(
                "sum", inner, distinct=call.distinct, condition=call.condition, mode=call.mode
            )
            return translate.aggregates.column(whole) if whole.dtype == target else None
    if child.cls == "WindowExpression" and translate.windows is not None:
        column = translate.windows.sum_of_unscaled_values(child)
        return column if column is not None and column.dtype == target else None
    return None
