"""Imports Window and WindowGroupLimit."""

from __future__ import annotations

from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, Literal, Named, SortKey
from kquery_spark.expr.windows import Frame, WindowCall
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.expressions.aggregate_functions import aggregated
from kquery_spark.frontends.catalyst.expressions.translator import WindowSink
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.projections import compute
from kquery_spark.frontends.catalyst.plans.python_aggregates import calls_python
from kquery_spark.frontends.catalyst.plans.python_windows import window_of_functions
from kquery_spark.frontends.catalyst.plans.window_frames import specification, window_frame
from kquery_spark.frontends.catalyst.scope import PlanScope
from kquery_spark.functions.aggregate.windows import window_for_catalyst
from kquery_spark.functions.aggregate_registry import aggregate_for_catalyst
from kquery_spark.logical import Window, WindowGroupLimit
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode, aggregate_filter

_LISTS = ("CollectList", "ListAgg")  # functions that collect rows in the window's order


@PLANS.handles("Window", family="windows", partly="functions and aggregates in the registry")
def window(node: CatalystNode, context: Context) -> PlanScope:
    """Functions over one partition and order, added to the rows."""
    if calls_python(node):
        return window_of_functions(node, context)
    child = context.subtree_or_handover(node.children[0])
    translate = context.translator(child.columns)
    partition, order = specification(node, translate)
    calls = _Calls(context, translate, order)
    around = context.translator(child.columns, windows=calls)
    computed: list[tuple[int, str, Expr]] = []
    for item in node.trees("windowExpressions"):
        calls.alias = item["name"]
        computed.append((item["exprId"], item["name"], around(item)))
    plan = Window(child.plan, tuple(calls.named), partition, order)
    passed = [(expr_id, name, plan.column(name)) for expr_id, name in child.output]
    return compute(plan, [*passed, *computed], context)


class _Calls(WindowSink):
    """The window calls of one Window, each with the name of its column.

    Spark's optimizer rewrites some of them: sums of short decimals become sums of their unscaled values.
    """

    def __init__(self, context: Context, translate: Translator, order: tuple[SortKey, ...]) -> None:
        self._context = context
        self._translate = translate
        self._order = order
        self.named: list[Named] = []
        self.alias = "window"

    @override
    def column(self, node: CatalystNode) -> Column:
        return self._add(_call(node, self._translate, self._order))

    @override
    def sum_of_unscaled_values(self, node: CatalystNode) -> Column | None:
        function = node.child("windowFunction")
        if function.cls != "AggregateExpression" or function.children[0].cls != "Sum":
            return None
        digits = function.children[0].children[0]
        if digits.cls != "UnscaledValue":
            return None
        call = _call(node, self._translate, self._order)
        value = self._translate(digits.children[0])
        only = aggregate_filter(function)
        condition = None if only is None else self._translate(only)
        return self._add(WindowCall.of("sum", value, frame=call.frame, mode=call.mode, condition=condition))

    def _add(self, call: WindowCall) -> Column:
        self.named.append(Named(call, self._context.names.fresh(self.alias)))
        return self.named[-1].column


@PLANS.handles("WindowGroupLimit", family="windows")
def window_group_limit(node: CatalystNode, context: Context) -> PlanScope:
    """Only the first rows of each group, because a filter above drops the others."""
    child = context.subtree_or_handover(node.children[0])
    translate = context.translator(child.columns)
    partition, order = specification(node, translate)
    function = window_for_catalyst(node.tree("rankLikeFunction").cls)
    if function is None or not function.supports_group_limit:
        raise Unsupported(f"a limit by {node.tree('rankLikeFunction').cls} is not supported")
    return child.with_plan(WindowGroupLimit(child.plan, partition, order, function.name, node["limit"]))


def _call(node: CatalystNode, translate: Translator, order: tuple[SortKey, ...]) -> WindowCall:
    function = node.child("windowFunction")
    frame = window_frame(node.child("windowSpec").child("frameSpecification"), translate, order)
    if function.cls == "AggregateExpression":
        inner = function.child("aggregateFunction")
        if inner.cls in _LISTS and not order:
            raise Unsupported(f"{inner.cls} over a window without an order is not supported")
        return _aggregate(function, frame, translate)
    entry = window_for_catalyst(function.cls)
    if entry is None:
        raise Unsupported(f"the window function {function.cls.rsplit('.', 1)[-1]} is not supported")
    match function.cls:
        case "Lag" | "Lead":
            return _shift(function, entry.name, translate)
        case "NthValue":
            args = [translate(child) for child in function.children]
            return WindowCall.of(entry.name, *args, frame=frame, ignore_nulls=bool(function["ignoreNulls"]))
        case "NTile":
            return WindowCall.of(entry.name, translate(function.children[0]))
    # Rank and similar functions repeat the window's order as children.
    return WindowCall.of(entry.name)


def _shift(function: CatalystNode, name: str, translate: Translator) -> WindowCall:
    """Translate LAG and LEAD; the offset is positive for both."""
    value, offset, default = (translate(child) for child in function.children)
    if not isinstance(offset, Literal) or not isinstance(offset.value, int) or offset.value < 0:
        raise Unsupported(f"{name} with an offset that is not a positive constant is not supported")
    args = [value, offset]
    if not (isinstance(default, Literal) and default.value is None):
        args.append(default)
    return WindowCall.of(name, *args, ignore_nulls=bool(function["ignoreNulls"]))


def _aggregate(node: CatalystNode, frame: Frame, translate: Translator) -> WindowCall:
    """Translate an aggregate over a frame; FIRST and LAST are the values at its ends."""
    function = node.child("aggregateFunction")
    if node["isDistinct"]:
        raise Unsupported("DISTINCT in a window is not supported")
    only = aggregate_filter(node)
    aggregate = aggregate_for_catalyst(function.cls)
    if aggregate is not None and aggregate.over_window:
        value = translate(function.child("child"))
        where = None if only is None else translate(only)
        ignore = bool(function["ignoreNulls"])
        return WindowCall.of(aggregate.over_window, value, frame=frame, ignore_nulls=ignore, condition=where)
    aggregate_parts = aggregated(function, translate)
    condition = None if only is None else translate(only)
    return WindowCall.of(
        aggregate_parts.entry.name,
        *aggregate_parts.args,
        frame=frame,
        mode=aggregate_parts.mode,
        condition=condition,
    )
