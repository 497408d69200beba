"""``window(...)`` and ``session_window(...)``: time windows, which become columns of the rows that a SELECT reads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Call, Case, Expr, Literal, Named
from kquery_spark.frontends.sql.analyzer.constants import constant_of
from kquery_spark.frontends.sql.analyzer.expressions.analyzer import ExpressionAnalyzer
from kquery_spark.frontends.sql.analyzer.scope import ResolvedRelation, Scope, ScopeColumn
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast.node import Node
from kquery_spark.frontends.sql.intervals import BadInterval, from_text
from kquery_spark.functions.special_forms import TimeWindowFunction, time_window_function
from kquery_spark.logical import Expand, Filter, LogicalPlan, Projection
from kquery_spark.types import names as t

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.analyzer.select_block.context import SelectContext

_MAX_WINDOWS = 1000  # maximum number of windows that contain a row


def with_time_window(
    context: SelectContext, relation: ResolvedRelation, order_by: Sequence[ast.SortItem]
) -> tuple[SelectContext, ResolvedRelation]:
    """Add the time window of a SELECT as a column; returns a context in which its calls refer to the column."""
    node = context.node
    clauses = (*node.items, node.group_by, node.having, node.qualify, *order_by)
    calls = list(dict.fromkeys(call for clause in clauses if clause is not None for call in _calls(clause)))
    if not calls:
        return context, relation
    if len(calls) > 1:
        context.queries.fail(
            "a SELECT can have only one time window, because several would combine each window with every other",
            calls[1],
        )
    (call,) = calls
    function = time_window_function(call.name[0].lower())
    assert function is not None
    analyzer = context.expressions(relation.scope, function.name)
    name = context.queries.names.fresh(function.name)
    with analyzer.at(call):
        add = _with_session if function.is_session else _with_window
        plan = add(analyzer, call, relation.plan, name)
    column = plan.column(name)
    scope = relation.scope.concat(
        Scope((ScopeColumn(function.name, column, unlisted=True),), relation.scope.facts)
    )
    session = column if function.is_session else None
    plans = (plan, *context.plans)
    context = replace(context, time_windows={call: column}, session=session, plans=plans)
    return context, ResolvedRelation(plan, scope)


def _calls(node: Node) -> Iterator[ast.Call]:
    """Yield the calls of time windows in a clause, except in its subqueries."""
    if isinstance(node, q.Query):
        return
    if isinstance(node, ast.Call) and len(node.name) == 1 and node.over is None:
        if isinstance(time_window_function(node.name[0].lower()), TimeWindowFunction):
            yield node
            return
    for child in node.children():
        yield from _calls(child)


def _with_window(analyzer: ExpressionAnalyzer, call: ast.Call, plan: LogicalPlan, name: str) -> LogicalPlan:
    """``window(time, width, step, offset)``: returns one row for each window that contains the row's time."""
    if not 2 <= len(call.arguments) <= 4:
        raise PlanError(
            f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] window takes 2 to 4 arguments, not {len(call.arguments)}"
        )
    time = _time(analyzer, call.arguments[0])
    durations = [_micros(analyzer, argument) for argument in call.arguments[1:]]
    width = durations[0]
    step = durations[1] if len(durations) > 1 else width
    offset = durations[2] if len(durations) > 2 else 0
    if width <= 0 or step <= 0:
        raise PlanError(
            "[DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE] the window duration and the slide duration must be positive"
        )
    if step > width or abs(offset) >= step:
        raise PlanError(
            "[DATATYPE_MISMATCH.PARAMETER_CONSTRAINT_VIOLATION] the slide duration must not exceed the window "
            "duration, and the start time must be less than the slide duration"
        )
    count = math.ceil(width / step)
    if count > _MAX_WINDOWS:
        raise Unsupported(f"a window of time of more than {_MAX_WINDOWS} steps is not supported")
    is_known = analyzer.call("isnotnull", time)
    windows = [_window(analyzer, time, width, step, offset, index) for index in range(count)]
    inputs = tuple(plan.column(n) for n in plan.schema.names)
    if count == 1:
        passed = tuple(Named(column, column.name) for column in inputs)
        return Projection(Filter(plan, is_known), (*passed, Named(windows[0], name)))
    # Spark declares overlapping windows nullable
    projections = tuple((*inputs, Case(((is_known, window),))) for window in windows)
    expanded = Expand(plan, projections, (*plan.schema.names, name))
    if width % step == 0:
        return Filter(expanded, is_known)
    start, end = (analyzer.field(expanded.column(name), part) for part in ("start", "end"))
    return Filter(
        expanded, analyzer.call("and", analyzer.call("gteq", time, start), analyzer.call("lt", time, end))
    )


def _window(analyzer: ExpressionAnalyzer, time: Expr, width: int, step: int, offset: int, index: int) -> Expr:
    """Build the window that starts ``index`` steps before the latest window that starts at or before the time.

    Windows start at ``offset + k * step`` microseconds. With a step of 5 and no offset, the latest window for the time
    12 starts at 12 - 12 mod 5 = 10. For times before the offset, the remainder is negative, so one more step is
    subtracted.
    """

    def long(value: int) -> Literal:
        return Literal(value, t.LONG)

    call = analyzer.call
    micros: Expr = Call.of("precise_timestamp", time, dtype=t.LONG)
    passed = call("mod", call("subtract", micros, long(offset)), long(step))
    begun = call("subtract", micros, passed)
    last = Case(((call("lt", passed, long(0)), call("subtract", begun, long(step))),), begun)
    start = call("subtract", last, long(index * step)) if index else last
    return _struct(*(_instant(part, time) for part in (start, call("add", start, long(width)))))


def _instant(micros: Expr, time: Expr) -> Expr:
    return Call.of("precise_timestamp", micros, dtype=time.dtype)


def _with_session(analyzer: ExpressionAnalyzer, call: ast.Call, plan: LogicalPlan, name: str) -> LogicalPlan:
    """``session_window(time, gap)``: the window of a single row; an aggregate by it merges overlapping windows."""
    if len(call.arguments) != 2:
        raise PlanError(
            f"[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] session_window takes 2 arguments, not {len(call.arguments)}"
        )
    time = _time(analyzer, call.arguments[0])
    gap = constant_of(analyzer.expr(call.arguments[1]))
    if gap is None or gap.dtype != t.STRING or gap.value is None:
        raise Unsupported("a session_window whose gap is not a constant string is not supported")
    interval = _interval(gap.value)
    if interval.start == "DAY" and pa.types.is_timestamp(time.dtype) and time.dtype.tz not in (None, "UTC"):
        raise Unsupported("a session_window whose gap has days is not supported in this time zone")
    if interval.amount <= 0:
        raise Unsupported("a session_window without a gap is not supported")
    end = Call.of("timestamp_add_interval", time, Literal(interval.amount, t.DAY_TIME), dtype=time.dtype)
    is_known = analyzer.call("isnotnull", time)
    passed = tuple(Named(plan.column(n), n) for n in plan.schema.names)
    return Projection(Filter(plan, is_known), (*passed, Named(_struct(time, end), name)))


def _time(analyzer: ExpressionAnalyzer, node: ast.Expression) -> Expr:
    """The time of a row; dates and strings are cast as in Spark."""
    time = analyzer.expr(node)
    if pa.types.is_struct(time.dtype):
        raise Unsupported("a window of windows is not supported")
    if not pa.types.is_timestamp(time.dtype):
        time = analyzer.convert.cast(time, t.timestamp(analyzer.facts.time_zone))
    return time


def _micros(analyzer: ExpressionAnalyzer, node: ast.Expression) -> int:
    """A constant duration in microseconds, as a number or as the string of an interval."""
    constant = constant_of(analyzer.expr(node))
    if constant is not None and constant.dtype in (t.INT, t.LONG) and constant.value is not None:
        return int(constant.value)
    if constant is None or constant.dtype != t.STRING or constant.value is None:
        raise PlanError("the durations of a window are constant strings, as in '5 minutes'")
    return _interval(constant.value).amount


def _interval(text: str) -> ast.IntervalLiteral:
    try:
        interval = from_text(text, -1)
    except BadInterval as error:
        raise PlanError(f"[INVALID_INTERVAL_FORMAT.INVALID_UNIT] {error}") from None
    if interval.is_year_month:
        raise PlanError("a window of time cannot have months, whose lengths differ")
    return interval


def _struct(start: Expr, end: Expr) -> Expr:
    fields = [pa.field("start", start.dtype), pa.field("end", end.dtype)]
    names = Literal("start", t.STRING), Literal("end", t.STRING)
    return Call.of("named_struct", names[0], start, names[1], end, dtype=pa.struct(fields))
