"""Window frames: the frame as written, or the default of the function, with its bounds as constants."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from kquery_spark.expr import Expr, Literal, SortKey
from kquery_spark.expr.windows import (
    UP_TO_PEERS,
    UP_TO_ROW,
    WHOLE_PARTITION,
    Frame,
    FrameUnit,
    in_days,
)
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.frontends.sql.ast.node import walk
from kquery_spark.functions.aggregate.windows import WindowFunction, window_function
from kquery_spark.types import names as t

_CURRENT_ROW = Literal(0, t.INT)


def frame_of(
    analyzer: ExpressionAnalyzer, name: str, spec: window_ast.WindowSpec, order: tuple[SortKey, ...]
) -> Frame:
    """The frame of a window function; raises SqlError for a frame that the function or Spark does not allow."""
    written = spec.frame
    entry = window_function(name)
    if written is None:
        return _default_frame(entry, order)
    if entry is not None and not entry.framed:
        analyzer.fail(f"[WINDOW_FUNCTION_AND_FRAME_MISMATCH] {name} takes no frame", written)
    unit = FrameUnit.ROWS if written.unit.upper() == "ROWS" else FrameUnit.RANGE
    _check_bound_kinds(analyzer, written, is_ordered=unit is FrameUnit.ROWS or bool(order))
    low = _bound(analyzer, written.start, unit, order)
    high = _bound(analyzer, written.end, unit, order)
    if low is not None and high is not None and low.value > high.value:
        analyzer.fail(
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WRONG_COMPARISON] the frame starts after its end",
            written,
        )
    return Frame(unit, low, high)


def _default_frame(entry: WindowFunction | None, order: tuple[SortKey, ...]) -> Frame:
    """The default frame of a window function, or of an aggregate (None)."""
    if entry is not None and not entry.framed:
        return WHOLE_PARTITION if entry.is_offset else UP_TO_ROW
    return UP_TO_PEERS if order else WHOLE_PARTITION


def _check_bound_kinds(analyzer: ExpressionAnalyzer, frame: window_ast.WindowFrame, is_ordered: bool) -> None:
    kinds = (frame.start.kind, frame.end.kind)
    if not is_ordered and kinds != ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"):
        analyzer.fail("[DATATYPE_MISMATCH.RANGE_FRAME_WITHOUT_ORDER] a RANGE frame needs an ORDER BY", frame)
    if frame.start.kind == "UNBOUNDED FOLLOWING" or frame.end.kind == "UNBOUNDED PRECEDING":
        analyzer.fail(
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_INVALID_BOUND] the frame's bounds are the wrong way round",
            frame,
        )


def _bound(
    analyzer: ExpressionAnalyzer, bound: window_ast.FrameBound, unit: FrameUnit, order: tuple[SortKey, ...]
) -> Literal | None:
    """A frame bound as a constant offset from the current row; None if it is unbounded."""
    if bound.kind.startswith("UNBOUNDED"):
        return None
    if bound.offset is None:
        return _CURRENT_ROW
    offset = analyzer.expr(bound.offset)
    if unit is FrameUnit.ROWS:
        dtype = _rows_offset_type(analyzer, bound, offset)
    else:
        dtype = _range_offset_type(analyzer, bound, bound.offset, offset, order)
    value = constant_of(analyzer.convert.cast(offset, dtype))
    if value is None or value.value is None:
        analyzer.fail(
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WITHOUT_FOLDABLE] the frame's bounds must be constant",
            bound,
        )
    if value.dtype == t.DAY_TIME and order[0].expr.dtype == t.DATE:
        value = in_days(value)
    return replace(value, value=-value.value) if bound.kind == "PRECEDING" else value


def _rows_offset_type(
    analyzer: ExpressionAnalyzer, bound: window_ast.FrameBound, offset: Expr
) -> pa.DataType:
    if not t.is_integral(offset.dtype):
        analyzer.fail(
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE] ROWS counts whole rows", bound
        )
    return t.INT


def _range_offset_type(
    analyzer: ExpressionAnalyzer,
    bound: window_ast.FrameBound,
    written: ast.Expression,
    offset: Expr,
    order: tuple[SortKey, ...],
) -> pa.DataType:
    """The type of the offset that is added to the sort key."""
    if len(order) != 1:
        analyzer.fail(
            "[DATATYPE_MISMATCH.RANGE_FRAME_MULTI_ORDER] RANGE with an offset needs one ORDER BY key", bound
        )
    key = order[0].expr.dtype
    dtype = _distance_type(key, offset.dtype)
    if dtype is None:
        analyzer.fail(
            "[DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE] RANGE with an offset needs an ORDER BY "
            f"key that is a number, a date or a timestamp, not {t.spark_name(key)}",
            bound,
        )
    is_distance = t.is_numeric(offset.dtype) or offset.dtype == t.DAY_TIME
    if not is_distance or (key == t.DATE and not _counts_days_only(written)):
        analyzer.fail(
            "[DATATYPE_MISMATCH.RANGE_FRAME_INVALID_TYPE] the frame's bound has a wrong type", bound
        )
    return dtype


def _distance_type(key: pa.DataType, offset: pa.DataType) -> pa.DataType | None:
    """The type of a distance between two values of a sort key; None for a key without distances."""
    if key == t.DATE:
        return t.DAY_TIME if offset == t.DAY_TIME else t.INT
    if pa.types.is_timestamp(key):
        return t.DAY_TIME
    return key if t.is_numeric(key) or key == t.DAY_TIME else None


def _counts_days_only(offset: ast.Expression) -> bool:
    """True if all intervals of an offset are of days, as those that Spark adds to dates are."""
    intervals = (node for node, _ in walk(offset) if isinstance(node, ast.IntervalLiteral))
    return all(node.start == node.end == "DAY" for node in intervals)
