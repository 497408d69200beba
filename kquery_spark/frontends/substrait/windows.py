"""Reads calls of window functions, and of aggregate functions over windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import Expr, Frame, FrameUnit, Literal, SortKey, WindowCall
from kquery_spark.expr.properties import is_constant
from kquery_spark.expr.windows import UP_TO_ROW, WHOLE_PARTITION
from kquery_spark.frontends.substrait.aggregate_functions import counts_rows
from kquery_spark.frontends.substrait.enums import FRAME_UNITS, INVOCATION_DISTINCT
from kquery_spark.frontends.substrait.mapping import (
    CallRequest,
    as_substrait_errors,
    cast_to_declared,
    integer_literal,
)
from kquery_spark.frontends.substrait.messages import Message
from kquery_spark.frontends.substrait.scope import Scope
from kquery_spark.functions.aggregate.windows import WindowFunction, window_function
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.substrait.reader import PlanReader

_MAX_OFFSET = 2**31 - 1


class WindowReader:
    """Reads the window calls in the expressions of projections."""

    def __init__(self, plan: PlanReader) -> None:
        self._plan = plan

    def read(self, message: Message, scope: Scope) -> Expr:
        """Return a column for the call. A Window node below the projection computes it (see WindowCalls)."""
        windows = scope.windows
        if windows is None:
            raise SubstraitError("a window function outside of a projection is not supported")
        # without ``windows``: the arguments and keys of a window call must not contain window calls
        inner = Scope(scope.columns, scope.outer)
        mapping, request = self._plan.aggregates.call(message, inner, over_window=True)
        if message.invocation == INVOCATION_DISTINCT:
            raise request.decline("DISTINCT over a window is not supported")
        keys = [self._plan.expressions.read(each, inner) for each in message.partitions]
        partition = tuple(key for key in keys if not is_constant(key))  # PARTITION BY 1 is one partition
        order = self._plan.expressions.sort_keys(message.sorts, inner)
        with as_substrait_errors(f"function {request.name}"):
            entry = window_function(mapping.function)
            args = _arguments(request, entry)
            if counts_rows(mapping.function, args):
                args = ()
            frame = _frame(message, request, entry)
            if self._plan.extensions.is_datafusion and (entry is None or entry.framed):
                _check_no_interval(frame, order, request)
            call = WindowCall.of(mapping.function, *args, frame=frame, mode=request.mode)
            if entry is not None and entry.ordered and not order:
                raise request.decline("its window must have sort fields")
        column: Expr = windows.column(call, partition, order, scope.name)
        # row_number and the ranks are int in the engine and i64 in Substrait; they always fit.
        if mapping.result is not None and request.declared in (None, mapping.result):
            return request.cast(column, mapping.result)
        return cast_to_declared(request, column)


def _arguments(request: CallRequest, entry: WindowFunction | None) -> tuple[Expr, ...]:
    """Return the arguments of a call as the engine takes them.

    The offset of LAG and LEAD, and the number of NTILE, become 32-bit literals. The default of LAG and LEAD gets the type of
    the values, if it fits.
    """
    if entry is None or entry.constant_argument is None:
        return request.args
    args = list(request.args)
    at = entry.constant_argument
    if at < len(args):
        number = integer_literal(args[at])
        if number is None or abs(number) > _MAX_OFFSET:
            raise request.decline(f"argument {at + 1} must be an integer literal that fits 32 bits")
        args[at] = Literal(number, t.INT)
    if entry.is_offset and len(args) == 3 and t.is_integral(args[0].dtype):
        args[2] = _narrowed(args[2], args[0].dtype)
    return tuple(args)


def _narrowed(default: Expr, dtype: pa.DataType) -> Expr:
    """Return an integer literal as another integer type, if it fits: DataFusion writes defaults of LAG and LEAD as i64."""
    value, limit = integer_literal(default), 2 ** (dtype.bit_width - 1)
    return Literal(value, dtype) if value is not None and -limit <= value < limit else default


def _frame(message: Message, request: CallRequest, entry: WindowFunction | None) -> Frame:
    """Return the frame of a call. Functions that ignore frames, such as LAG, always get the same frame, as in Spark."""
    if entry is not None and not entry.framed:
        return WHOLE_PARTITION if entry.is_offset else UP_TO_ROW
    unit = FRAME_UNITS.get(message.bounds_type)
    lower, upper = _bound(message, "lower_bound", request), _bound(message, "upper_bound", request)
    if lower is None and upper is None:
        return (
            Frame(FrameUnit.RANGE, None, None)
            if unit is FrameUnit.RANGE and message.sorts
            else WHOLE_PARTITION
        )
    if unit is None:
        raise request.decline("a frame must be of ROWS or of RANGE")
    if unit is FrameUnit.RANGE and any(b is not None and b.value for b in (lower, upper)):
        raise request.decline(
            "a RANGE frame with an offset is not supported, because Substrait does not define the type of the offset"
        )
    if unit is FrameUnit.RANGE and not message.sorts:
        raise request.decline("a RANGE frame needs sort fields")
    if lower is not None and upper is not None and lower.value > upper.value:
        raise request.decline("the frame starts after its end")
    return Frame(unit, lower, upper)


def _check_no_interval(frame: Frame, order: tuple[SortKey, ...], request: CallRequest) -> None:
    """Raise SubstraitError for a RANGE frame over dates or timestamps in a plan of DataFusion.

    DataFusion writes a bound with an interval as unbounded, so the plan does not show what the frame was.
    """
    if frame.unit is FrameUnit.RANGE and any(pa.types.is_temporal(key.expr.dtype) for key in order):
        raise request.decline(
            "a RANGE frame of DataFusion over dates or timestamps is not supported: it writes frames with intervals as "
            "unbounded; write a frame of ROWS"
        )


def _bound(message: Message, field: str, request: CallRequest) -> Literal | None:
    """Return the distance of a bound to the current row; None for an unbounded one, which is the default."""
    if not message.HasField(field):
        return None
    bound = getattr(message, field)
    kind = bound.WhichOneof("kind")
    if kind is None:
        raise request.decline(
            "a bound of its frame has no kind, or one that this release of substrait does not know"
        )
    if kind == "unbounded":
        return None
    if kind == "current_row":
        return Literal(0, t.INT)
    offset = getattr(bound, kind).offset
    if not 0 <= offset <= _MAX_OFFSET:
        raise request.decline(f"a frame with the offset {offset} is not supported")
    return Literal(-offset if kind == "preceding" else offset, t.INT)
