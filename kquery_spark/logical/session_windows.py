"""Session windows: rows of a group whose windows overlap or touch get one window, by which they are grouped.

Each row has a window of its own, from its time to the end of the gap behind it; the merged ones come from two windows over
the rows of each group in the order of time.
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
    """Names of the columns that are computed on the way."""

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
    """The keys and calls by group and session; the key ``session`` of the result is the merged window.

    fresh: gives a name that no other column has.
    """
    names = _Columns(*map(fresh, ("start", "end", "reached", "begins", "session")))
    others = tuple(key for key in keys if key is not session)
    rows = _numbered(child, others, session.expr, names)
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


def _numbered(child: LogicalPlan, keys: tuple[Named, ...], window: Expr, names: _Columns) -> LogicalPlan:
    """The rows with the keys, the ends of their own windows and the number of their session in the group."""
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
    # rows that start at once are in one session, and one of them begins it
    number = WindowCall.of("sum", plan.column(names.begins), frame=UP_TO_PEERS)
    return Window(plan, (Named(number, names.number),), partition, order)
