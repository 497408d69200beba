"""Writes the calls of aggregate functions and window functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.errors import PlanError, SubstraitError
from kquery_spark.expr import AggregateCall, Expr, Frame, FrameUnit, Literal, WindowCall
from kquery_spark.frontends.substrait.aggregate_functions import WRITTEN_AGGREGATES, AggregateMapping
from kquery_spark.frontends.substrait.aggregates import without_condition
from kquery_spark.frontends.substrait.enums import (
    FRAME_UNITS,
    INVOCATION_ALL,
    INVOCATION_DISTINCT,
    PHASE_INITIAL_TO_RESULT,
)
from kquery_spark.frontends.substrait.mapping import CallRequest
from kquery_spark.frontends.substrait.messages import Message, proto
from kquery_spark.frontends.substrait.write_expressions import cast_to, write_options
from kquery_spark.frontends.substrait.write_scope import WriteScope
from kquery_spark.functions.registry import EvalMode
from kquery_spark.logical import Window
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.substrait.writer import PlanWriter

_UNITS = {unit: number for number, unit in FRAME_UNITS.items()}


class CallWriter:
    """Writes the calls in the Aggregate and Window nodes of one plan."""

    def __init__(self, plan: PlanWriter) -> None:
        self._plan = plan

    def measure(self, call: Expr, scope: WriteScope) -> Message:
        """Return the measure of an aggregate call."""
        if not isinstance(call, AggregateCall):
            raise SubstraitError(f"{call} is not an aggregate function")
        args = call.args
        if call.condition is not None:
            args = tuple(without_condition(a, call.condition) for a in args)
        entry = self._checked_mapping(call, args)
        message = proto().AggregateRel.Measure()
        self._write_call(message.measure, call, entry, args, scope)
        message.measure.invocation = INVOCATION_DISTINCT if call.distinct else INVOCATION_ALL
        if call.condition is not None:
            message.filter.CopyFrom(self._plan.expressions.write(call.condition, scope))
        return message

    def window(self, call: Expr, node: Window, scope: WriteScope) -> Message:
        """Return the expression of a window call. node: the Window node that has its keys."""
        if not isinstance(call, WindowCall):
            raise SubstraitError(f"{call} is not a window function")
        if call.ignore_nulls:
            raise SubstraitError(f"{call.function} with IGNORE NULLS cannot be written as Substrait")
        if call.entry is not None and call.entry.is_frame_end and len(call.args) > 1:
            raise SubstraitError(f"{call.function} with FILTER over a window cannot be written as Substrait")
        entry = self._checked_mapping(call, call.args)
        expressions = self._plan.expressions
        message = proto().Expression()
        function = message.window_function
        self._write_call(function, call, entry, call.args, scope)
        function.invocation = INVOCATION_ALL
        function.partitions.extend(expressions.write(p, scope) for p in node.partition)
        function.sorts.extend(expressions.sort_fields(node.order, scope))
        _write_frame(function, call.frame)
        return message if entry.result is None else cast_to(message, call.type, call.nullable)

    def _checked_mapping(self, call: AggregateCall | WindowCall, args: tuple[Expr, ...]) -> AggregateMapping:
        """Return the mapping of a call; raises SubstraitError if Substrait's function has other results than the call."""
        entry = WRITTEN_AGGREGATES.get(call.function)
        facts = self._plan.facts
        if entry is None:
            raise SubstraitError(
                f"function {call.function} cannot be written as Substrait, which has no function with the same results"
            )
        if call.mode is not facts.mode and entry.is_aggregate:
            raise SubstraitError(
                f"function {call.function} in {call.mode} mode cannot be written as Substrait"
            )
        if entry.is_aggregate and args:
            preferences = {name: (value,) for name, value in entry.required_options.items()}
            try:
                entry.check_call(
                    CallRequest(entry.name, args, call.mode, facts.time_zone, (), preferences, call.type)
                )
            except PlanError as error:
                raise SubstraitError(f"{error}, so it cannot be written as Substrait") from None
        if entry.function == "count" and len(args) > 1:
            raise SubstraitError("count of several columns cannot be written as Substrait")
        return entry

    def _write_call(
        self,
        message: Message,
        call: AggregateCall | WindowCall,
        entry: AggregateMapping,
        args: tuple[Expr, ...],
        scope: WriteScope,
    ) -> None:
        """Fill in what aggregate calls and window calls have in common. message: AggregateFunction or WindowFunction."""
        options = dict(entry.required_options)
        if entry.function == "sum" and args[0].dtype == t.LONG:
            options["overflow"] = "ERROR" if call.mode is EvalMode.ANSI else "SILENT"
        result = (entry.result or call.type, call.nullable)
        self._plan.expressions.function_call(message, entry, args, result, scope)
        write_options(message, options)
        message.phase = PHASE_INITIAL_TO_RESULT


def _write_frame(message: Message, frame: Frame) -> None:
    if frame.months:
        raise SubstraitError(f"the frame {frame} cannot be written as Substrait")
    message.bounds_type = _UNITS[frame.unit]
    for field, bound in (("lower_bound", frame.lower), ("upper_bound", frame.upper)):
        _write_bound(getattr(message, field), bound, frame)


def _write_bound(message: Message, bound: Literal | None, frame: Frame) -> None:
    if bound is None:
        message.unbounded.SetInParent()
    elif bound.value == 0:
        message.current_row.SetInParent()
    elif frame.unit is FrameUnit.RANGE:
        raise SubstraitError(f"the frame {frame} cannot be written as Substrait, whose offsets count rows")
    elif bound.value < 0:
        message.preceding.offset = -bound.value
    else:
        message.following.offset = bound.value
