"""Window and WindowGroupLimit."""

from __future__ import annotations

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Column, Expr, Literal, Named, SortKey
from kquery_spark.expr.windows import (
    WHOLE_PARTITION,
    Frame,
    FrameUnit,
    WindowCall,
    check_months,
    check_range,
    in_days,
)
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.expressions.aggregate_functions import aggregated
from kquery_spark.frontends.catalyst.expressions.translator import WindowSink
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.projections import compute
from kquery_spark.frontends.catalyst.plans.sorts import sort_keys
from kquery_spark.frontends.catalyst.scope import Scope, check_key
from kquery_spark.functions.aggregate_registry import aggregate_for_catalyst
from kquery_spark.functions.windows import window_for_catalyst
from kquery_spark.logical import Window, WindowGroupLimit
from kquery_spark.spark_bridge.plan_tree import CatalystNode, aggregate_filter
from kquery_spark.spark_bridge.spark_types import is_year_month
from kquery_spark.types import names as t

_LISTS = ("CollectList", "ListAgg")  # of rows in the window's order
_UNITS = {"RowFrame": FrameUnit.ROWS, "RangeFrame": FrameUnit.RANGE}


@PLANS.handles("Window", family="windows", partly="functions and aggregates in the registry")
def window(node: CatalystNode, context: Context) -> Scope:
    """Functions over one partition and order, added to the rows."""
    child = context.feed(node.children[0])
    translate = context.translator(child.columns)
    partition, order = _specification(node, translate)
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

    Spark's optimizer puts expressions around some of them: sums of short decimals are made of their digits.
    """

    def __init__(self, context: Context, translate: Translator, order: tuple[SortKey, ...]) -> None:
        self._context = context
        self._translate = translate
        self._order = order
        self.named: list[Named] = []
        self.alias = "window"

    @override
    def column(self, node: CatalystNode) -> Column:
        call = _call(node, self._translate, self._order)
        self.named.append(Named(call, self._context.names.fresh(self.alias)))
        return self.named[-1].column

    @override
    def sum_of_digits(self, node: CatalystNode) -> Column | None:
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
        whole = WindowCall.of("sum", value, frame=call.frame, mode=call.mode, condition=condition)
        self.named.append(Named(whole, self._context.names.fresh(self.alias)))
        return self.named[-1].column


@PLANS.handles("WindowGroupLimit", family="windows")
def window_group_limit(node: CatalystNode, context: Context) -> Scope:
    """Only the first rows of each group, because a filter above drops the others."""
    child = context.feed(node.children[0])
    translate = context.translator(child.columns)
    partition, order = _specification(node, translate)
    function = window_for_catalyst(node.tree("rankLikeFunction").cls)
    if function is None or not function.cuts_groups:
        raise Unsupported(f"a limit by {node.tree('rankLikeFunction').cls} stays with Spark")
    return child.over(WindowGroupLimit(child.plan, partition, order, function.name, node["limit"]))


def _specification(node: CatalystNode, translate: Translator) -> tuple[tuple[Expr, ...], tuple[SortKey, ...]]:
    partition = tuple(translate(item) for item in node.trees("partitionSpec"))
    for expr in partition:
        check_key(expr.dtype)
    return partition, sort_keys(node.trees("orderSpec"), translate)


def _call(node: CatalystNode, translate: Translator, order: tuple[SortKey, ...]) -> WindowCall:
    function = node.child("windowFunction")
    frame = _frame(node.child("windowSpec").child("frameSpecification"), translate, order)
    if function.cls == "AggregateExpression":
        inner = function.child("aggregateFunction")
        if inner.cls in _LISTS and not order:
            raise Unsupported(f"{inner.cls} over a window without an order stays with Spark")
        return _aggregate(function, frame, translate)
    entry = window_for_catalyst(function.cls)
    if entry is None:
        raise Unsupported(f"the window function {function.cls.rsplit('.', 1)[-1]} stays with Spark")
    match function.cls:
        case "Lag" | "Lead":
            return _shift(function, entry.name, translate)
        case "NthValue":
            args = [translate(child) for child in function.children]
            return WindowCall.of(entry.name, *args, frame=frame, ignore_nulls=bool(function["ignoreNulls"]))
        case "NTile":
            return WindowCall.of(entry.name, translate(function.children[0]))
    # Rank and its kin repeat the window's order as children.
    return WindowCall.of(entry.name)


def _shift(function: CatalystNode, name: str, translate: Translator) -> WindowCall:
    """LAG and LEAD; the offset is positive in both."""
    value, offset, default = (translate(child) for child in function.children)
    if not isinstance(offset, Literal) or not isinstance(offset.value, int) or offset.value < 0:
        raise Unsupported(f"{name} with an offset that is not a positive constant stays with Spark")
    args = [value, offset]
    if not (isinstance(default, Literal) and default.value is None):
        args.append(default)
    return WindowCall.of(name, *args, ignore_nulls=bool(function["ignoreNulls"]))


def _aggregate(node: CatalystNode, frame: Frame, translate: Translator) -> WindowCall:
    """An aggregate over a frame; FIRST and LAST are the values at its ends."""
    function = node.child("aggregateFunction")
    if node["isDistinct"]:
        raise Unsupported("DISTINCT in a window stays with Spark")
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


def _frame(node: CatalystNode, translate: Translator, order: tuple[SortKey, ...]) -> Frame:
    if node.cls != "SpecifiedWindowFrame":
        raise Unsupported("a window without a frame stays with Spark")
    unit = _UNITS[node["frameType"]]
    low, high = node.child("lower"), node.child("upper")
    if _is_year_month(low) or _is_year_month(high):
        return _frame_of_months(low, high, translate, order)
    lower, upper = _bound(low, translate), _bound(high, translate)
    if lower is None and upper is None:
        return WHOLE_PARTITION
    if unit is FrameUnit.RANGE:
        lower, upper = (_moving(bound, order) for bound in (lower, upper))
    return Frame(unit, lower, upper)


def _is_year_month(bound: CatalystNode) -> bool:
    return bound.cls == "Literal" and is_year_month(bound["dataType"])


def _frame_of_months(
    low: CatalystNode, high: CatalystNode, translate: Translator, order: tuple[SortKey, ...]
) -> Frame:
    """A RANGE frame with year-month intervals for bounds, none of which is another interval."""
    if len(order) != 1:
        raise Unsupported("a RANGE frame over several ORDER BY keys stays with Spark")
    check_months(order[0].expr.dtype)
    lower, upper = _months(low, translate), _months(high, translate)
    return Frame(FrameUnit.RANGE, lower, upper, months=True)


def _months(node: CatalystNode, translate: Translator) -> Literal | None:
    """A bound as a number of months."""
    if _is_year_month(node):
        return Literal(int(node["value"]), t.INT)
    bound = _bound(node, translate)
    if bound is not None and bound != _CURRENT:
        raise Unsupported("a RANGE frame of months and days stays with Spark")
    return bound


_CURRENT = Literal(0, t.INT)


def _moving(bound: Literal | None, order: tuple[SortKey, ...]) -> Literal | None:
    """The bound of a RANGE frame, converted to the type that is added to the key."""
    if bound is None or bound == _CURRENT:
        return bound
    distance_type = _distance(order)
    if order[0].expr.dtype == t.DATE and bound.dtype == t.DAY_TIME:
        bound = in_days(bound)
    if bound.dtype != distance_type:
        raise Unsupported(f"a RANGE frame with the bound {bound} stays with Spark")
    check_range(bound, order[0].expr.dtype)
    return bound


def _bound(node: CatalystNode, translate: Translator) -> Literal | None:
    if node.cls in ("UnboundedPreceding", "UnboundedFollowing"):
        return None
    if node.cls == "CurrentRow":
        return _CURRENT
    bound = translate(node)
    if not isinstance(bound, Literal) or bound.value is None:
        raise Unsupported("a window frame whose bound is not a constant stays with Spark")
    return bound


def _distance(order: tuple[SortKey, ...]) -> pa.DataType:
    """The type of distances between values of the one ORDER BY key."""
    if len(order) != 1:
        raise Unsupported("a RANGE frame over several ORDER BY keys stays with Spark")
    dtype = order[0].expr.dtype
    if dtype == t.DATE:
        return t.INT
    return t.DAY_TIME if pa.types.is_timestamp(dtype) else dtype
