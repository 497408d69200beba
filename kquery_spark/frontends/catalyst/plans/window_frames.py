"""The partition, the order and the frames of a Window."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal, SortKey
from kquery_spark.expr.windows import WHOLE_PARTITION, Frame, FrameUnit, check_months, check_range, in_days
from kquery_spark.frontends.catalyst.expressions import Translator
from kquery_spark.frontends.catalyst.plans.sorts import sort_keys
from kquery_spark.frontends.catalyst.scope import check_key
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.types import names as t
from kquery_spark.types.spark_json import is_year_month

_UNITS = {"RowFrame": FrameUnit.ROWS, "RangeFrame": FrameUnit.RANGE}
_CURRENT = Literal(0, t.INT)


def specification(node: CatalystNode, translate: Translator) -> tuple[tuple[Expr, ...], tuple[SortKey, ...]]:
    """Return the partition and order of a window."""
    partition = tuple(translate(item) for item in node.trees("partitionSpec"))
    for expr in partition:
        check_key(expr.dtype)
    return partition, sort_keys(node.trees("orderSpec"), translate)


def window_frame(node: CatalystNode, translate: Translator, order: tuple[SortKey, ...]) -> Frame:
    """Translate the frame of a window function."""
    if node.cls != "SpecifiedWindowFrame":
        raise Unsupported("a window without a frame is not supported")
    unit = _UNITS[node["frameType"]]
    low, high = node.child("lower"), node.child("upper")
    if _is_year_month(low) or _is_year_month(high):
        return _frame_of_months(low, high, translate, order)
    lower, upper = _bound(low, translate), _bound(high, translate)
    if lower is None and upper is None:
        return WHOLE_PARTITION
    if unit is FrameUnit.RANGE:
        lower, upper = (_range_bound(bound, order) for bound in (lower, upper))
    return Frame(unit, lower, upper)


def _is_year_month(bound: CatalystNode) -> bool:
    return bound.cls == "Literal" and is_year_month(bound["dataType"])


def _frame_of_months(
    low: CatalystNode, high: CatalystNode, translate: Translator, order: tuple[SortKey, ...]
) -> Frame:
    """A RANGE frame whose bounds are year-month intervals (or not intervals at all)."""
    if len(order) != 1:
        raise Unsupported("a RANGE frame over several ORDER BY keys is not supported")
    check_months(order[0].expr.dtype)
    lower, upper = _months(low, translate), _months(high, translate)
    return Frame(FrameUnit.RANGE, lower, upper, months=True)


def _months(node: CatalystNode, translate: Translator) -> Literal | None:
    """Convert a bound to a number of months; None if it is not a year-month interval."""
    if _is_year_month(node):
        return Literal(int(node["value"]), t.INT)
    bound = _bound(node, translate)
    if bound is not None and bound != _CURRENT:
        raise Unsupported("a RANGE frame of months and days is not supported")
    return bound


def _range_bound(bound: Literal | None, order: tuple[SortKey, ...]) -> Literal | None:
    """The bound of a RANGE frame, converted to the type that is added to the key."""
    if bound is None or bound == _CURRENT:
        return bound
    distance_type = _distance(order)
    if order[0].expr.dtype == t.DATE and bound.dtype == t.DAY_TIME:
        bound = in_days(bound)
    if bound.dtype != distance_type:
        raise Unsupported(f"a RANGE frame with the bound {bound} is not supported")
    check_range(bound, order[0].expr.dtype)
    return bound


def _bound(node: CatalystNode, translate: Translator) -> Literal | None:
    if node.cls in ("UnboundedPreceding", "UnboundedFollowing"):
        return None
    if node.cls == "CurrentRow":
        return _CURRENT
    bound = translate(node)
    if not isinstance(bound, Literal) or bound.value is None:
        raise Unsupported("a window frame whose bound is not a constant is not supported")
    return bound


def _distance(order: tuple[SortKey, ...]) -> pa.DataType:
    """The type of distances between values of the only ORDER BY key."""
    if len(order) != 1:
        raise Unsupported("a RANGE frame over several ORDER BY keys is not supported")
    dtype = order[0].expr.dtype
    if dtype == t.DATE:
        return t.INT
    return t.DAY_TIME if pa.types.is_timestamp(dtype) else dtype
