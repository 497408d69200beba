"""Plans session windows: rows of a group whose windows overlap or touch are merged into one session.

Each row starts with a window of its own, from its time to its time plus the gap. Two window functions over the rows of each
group, ordered by time, merge them. With a gap of 5 minutes:

    start  end    reached (max end so far)  begins  session (running sum of begins)
    10:00  10:05  NULL                      1       1
    10:03  10:08  10:05                     0       1
    10:20  10:25  10:08                     1       2

A row begins a new session if it starts after the largest end of all rows before it. The session number is then an ordinary
grouping key, and the window of a session is ``min(start)`` to ``max(end)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kquery_spark.expr import (
    AggregateCall,
    Call,
    Case,
    Column,
    Expr,
    Frame,
    FrameUnit,
    Literal,
    Named,
    SortKey,
)
from kquery_spark.expr.windows import UP_TO_PEERS, WindowCall
from kquery_spark.logical.aggregate import Aggregate
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.projection import Projection
from kquery_spark.logical.window import Window
from kquery_spark.types import names as t

_BEFORE = Frame(FrameUnit.ROWS, None, Literal(-1, t.INT))


@dataclass(frozen=True)
class _Columns:
    """Names of the intermediate columns; see the table at the top of this module."""

    start: str
    end: str
    reached: str
    begins: str
    number: str


def aggregate_sessions(
    child: LogicalPlan,
    keys: tuple[Named, ...],
    session: Named,
    calls: tuple[Named, ...],
    fresh: Callable[[str], str],
) -> LogicalPlan:
    """Group by the keys and the session, and compute the calls. In the result, the key ``session`` is the merged window.

    fresh: returns a name that no other column has.
    """
    names = _Columns(*map(fresh, ("start", "end", "reached", "begins", "session")))
    others = tuple(key for key in keys if key is not session)
    rows = _with_session_numbers(child, others, session.expr, names)
    groups = (
        *(Named(key.column, key.name) for key in others),
        Named(rows.column(names.number), names.number),
    )
    ends = (
        Named(AggregateCall.of("min", rows.column(names.start)), names.start),
        Named(AggregateCall.of("max", rows.column(names.end)), names.end),
    )
    grouped = Aggregate(rows, groups, (*calls, *ends))
    parts = (Literal("start", t.STRING), grouped.column(names.start), Literal("end", t.STRING))
    window = Call.of("named_struct", *parts, grouped.column(names.end), dtype=session.expr.dtype)
    passed = (*(key.column for key in others), *(call.column for call in calls))
    return Projection(
        grouped, (*(Named(column, column.name) for column in passed), Named(window, session.name))
    )


def _with_session_numbers(
    child: LogicalPlan, keys: tuple[Named, ...], window: Expr, names: _Columns
) -> LogicalPlan:
    """Append to each row the keys, the start and end of its own window, and the number of its session in the group."""
    schema = child.schema
    passed = tuple(Named(Column(f.name, f.type, f.nullable), f.name) for f in schema)
    computed = tuple(key for key in keys if key.name not in schema.names)
    ends = (
        Named(Call.of("get_struct_field", window, Literal(0, t.INT)), names.start),
        Named(Call.of("get_struct_field", window, Literal(1, t.INT)), names.end),
    )
    plan: LogicalPlan = Projection(child, (*passed, *computed, *ends))
    partition = tuple(key.column for key in keys)
    order = (SortKey(plan.column(names.start), True, True),)
    reached = WindowCall.of("max", plan.column(names.end), frame=_BEFORE)
    plan = Window(plan, (Named(reached, names.reached),), partition, order)
    is_apart = Call.of("gt", plan.column(names.start), plan.column(names.reached))
    first = Call.of("isnull", plan.column(names.reached))
    begins = Case(((Call.of("or", first, is_apart), Literal(1, t.INT)),), Literal(0, t.INT))
    every = tuple(Named(Column(f.name, f.type, f.nullable), f.name) for f in plan.schema)
    plan = Projection(plan, (*every, Named(begins, names.begins)))
    # Rows with equal starts belong to the same session, but only one of them has begins = 1. The frame includes all peers
    # of a row, so each of them gets the sum with this 1 in it.
    number = WindowCall.of("sum", plan.column(names.begins), frame=UP_TO_PEERS)
    return Window(plan, (Named(number, names.number),), partition, order)
