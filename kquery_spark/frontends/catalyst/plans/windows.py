"""Window and WindowGroupLimit."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal, Named, SortKey
from kquery_spark.expr.windows import UP_TO_PEERS, UP_TO_ROW, WHOLE_PARTITION, Frame, FrameUnit, WindowCall
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.expressions.aggregates import ORDERED, aggregated
from kquery_spark.frontends.catalyst.plans.context import PLANS, Context
from kquery_spark.frontends.catalyst.plans.sorts import sort_keys
from kquery_spark.frontends.catalyst.scope import Scope, check_key
from kquery_spark.frontends.catalyst.tree import CatalystNode, aggregate_filter
from kquery_spark.functions.windows import window_for_catalyst
from kquery_spark.logical import Window, WindowGroupLimit
from kquery_spark.types import names as t

_RANKS = {"RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank"}
_UNITS = {"RowFrame": FrameUnit.ROWS, "RangeFrame": FrameUnit.RANGE}
# Picks over a frame, by whether NULLs are skipped: the row order is the window's.
_PICKS = {"First": "first_value", "Last": "last_value"}


@PLANS.handles("Window", family="windows", partly="functions and aggregates in the registry")
def window(node: CatalystNode, context: Context) -> Scope:
    """Functions over one partition and order, added to the rows."""
    child = context.feed(node.children[0])
    translate = context.translator(child.columns)
    partition, order = _specification(node, translate)
    calls: list[Named] = []
    output = list(child.output)
    for item in node.trees("windowExpressions"):
        if item.cls != "Alias" or item.children[0].cls != "WindowExpression":
            raise Unsupported("an expression around a window function at this place stays with Spark")
        name = context.names.fresh(item["name"])
        calls.append(Named(_call(item.children[0], translate), name))
        output.append((item["exprId"], name))
    return Scope(Window(child.plan, tuple(calls), partition, order), tuple(output))


@PLANS.handles("WindowGroupLimit", family="windows")
def window_group_limit(node: CatalystNode, context: Context) -> Scope:
    """Only the first rows of each group, because a filter above wants no others."""
    child = context.feed(node.children[0])
    translate = context.translator(child.columns)
    partition, order = _specification(node, translate)
    function = _RANKS.get(node.tree("rankLikeFunction").cls)
    if function is None:
        raise Unsupported(f"a limit by {node.tree('rankLikeFunction').cls} stays with Spark")
    return child.over(WindowGroupLimit(child.plan, partition, order, function, node["limit"]))


def _specification(
    node: CatalystNode, translate: Translator
) -> tuple[tuple[Expr, ...], tuple[SortKey, ...]]:
    partition = tuple(translate(item) for item in node.trees("partitionSpec"))
    for expr in partition:
        check_key(expr.dtype)
    return partition, sort_keys(node.trees("orderSpec"), translate)


def _call(node: CatalystNode, translate: Translator) -> WindowCall:
    function = node.child("windowFunction")
    frame = _frame(node.child("windowSpec").child("frameSpecification"))
    if function.cls == "AggregateExpression":
        return _aggregate(function, frame, translate)
    entry = window_for_catalyst(function.cls)
    if entry is None:
        raise Unsupported(f"the window function {function.cls.rsplit('.', 1)[-1]} stays with Spark")
    match function.cls:
        case "Lag" | "Lead":
            return _shift(function, entry.name, translate)
        case "NthValue":
            args = [translate(function.child("input")), translate(function.child("offset"))]
            return WindowCall.of(entry.name, *args, frame=frame, ignore_nulls=bool(function["ignoreNulls"]))
        case "NTile":
            return WindowCall.of(entry.name, translate(function.child("buckets")), frame=frame)
    # Rank and its kin repeat the window's order as children.
    return WindowCall.of(entry.name, frame=frame)


def _shift(function: CatalystNode, name: str, translate: Translator) -> WindowCall:
    """LAG and LEAD: Spark writes the offset of LAG negated."""
    value, offset = translate(function.child("input")), translate(function.child("offset"))
    if not isinstance(offset, Literal) or not isinstance(offset.value, int):
        raise Unsupported(f"{name} with an offset that is not a constant stays with Spark")
    default = translate(function.child("default"))
    distance = -offset.value if function.cls == "Lag" else offset.value
    args: list[Expr] = [value, Literal(distance, t.INT)]
    if not (isinstance(default, Literal) and default.value is None):
        args.append(default)
    return WindowCall.of(name, *args, ignore_nulls=bool(function["ignoreNulls"]))


def _aggregate(node: CatalystNode, frame: Frame, translate: Translator) -> WindowCall:
    """An aggregate over a frame; FIRST and LAST are the values at its ends."""
    function = node.child("aggregateFunction")
    if node["isDistinct"] or aggregate_filter(node) is not None:
        raise Unsupported("DISTINCT or FILTER in a window stays with Spark")
    pick = _PICKS.get(function.cls)
    if pick is not None:
        ignore = bool(function["ignoreNulls"])
        return WindowCall.of(pick, translate(function.child("child")), frame=frame, ignore_nulls=ignore)
    if function.cls in ORDERED:
        raise Unsupported(f"{function.cls} over a window stays with Spark")
    found = aggregated(function, translate)
    return WindowCall.of(found.entry.name, *found.args, frame=frame, mode=found.mode)


def _frame(node: CatalystNode) -> Frame:
    if node.cls != "SpecifiedWindowFrame":
        raise Unsupported("a window without a frame stays with Spark")
    unit = _UNITS[node["frameType"]]
    lower, upper = _bound(node.child("lower")), _bound(node.child("upper"))
    frame = Frame(unit, lower, upper)
    for known in (WHOLE_PARTITION, UP_TO_ROW, UP_TO_PEERS):
        if frame.unit == known.unit and frame.lower == known.lower and frame.upper == known.upper:
            return known
    return WHOLE_PARTITION if frame.whole else frame


def _bound(node: CatalystNode) -> Literal | None:
    match node.cls:
        case "UnboundedPreceding" | "UnboundedFollowing":
            return None
        case "CurrentRow":
            return Literal(0, t.INT)
        case "Literal":
            if node["dataType"] == "integer":
                return Literal(int(node["value"]), t.INT)
    raise Unsupported("a window frame with such a bound stays with Spark")
