"""A function applied over a window frame, inside a Window node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr.nodes import Case, Expr, Literal
from kquery_spark.expr.properties import can_raise
from kquery_spark.functions.aggregate.windows import WindowFunction, window_function
from kquery_spark.functions.aggregate_registry import aggregate_function
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from kquery_spark.types.decimals import NARROW_PRECISION
from kquery_spark.types.str_enum import StrEnum
from kquery_spark.types.units import DAY_MICROS


class FrameUnit(StrEnum):
    """ROWS counts rows; RANGE compares the value of the one ORDER BY key."""

    ROWS = "rows"
    RANGE = "range"


_CURRENT = Literal(0, pa.int32())


@dataclass(frozen=True)
class Frame:
    """The frame of a window function; both bounds are inclusive.

    A bound is None (unbounded), 0 (the current row; for RANGE, also its peers), negative (preceding) or positive
    (following). A RANGE bound other than 0 is a literal that is added to the key: for numbers, one of the key's type;
    for dates, an int of days; for timestamps, a day-time interval. With ``months``, it is an int of months for both
    dates and timestamps.
    """

    unit: FrameUnit = FrameUnit.RANGE
    lower: Literal | None = None
    upper: Literal | None = _CURRENT
    months: bool = False

    def __str__(self) -> str:
        unit = " MONTHS" if self.months else ""
        low = "UNBOUNDED PRECEDING" if self.lower is None else _bound(self.lower, unit)
        high = "UNBOUNDED FOLLOWING" if self.upper is None else _bound(self.upper, unit)
        return f"{self.unit.upper()} BETWEEN {low} AND {high}"

    @property
    def whole(self) -> bool:
        """Whether the frame is always the partition."""
        return self.lower is None and self.upper is None


def _bound(offset: Literal, unit: str) -> str:
    if offset.value == 0:
        return "CURRENT ROW"
    if offset.value < 0:
        return f"{Literal(-offset.value, offset.type)}{unit} PRECEDING"
    return f"{offset}{unit} FOLLOWING"


def check_range(offset: Literal, dtype: pa.DataType) -> None:
    """Raise Unsupported for the bound of a RANGE frame that cannot be added to keys of the type."""
    if offset.value == 0:
        return
    if _has_clock_changes(dtype) and abs(int(offset.value)) >= DAY_MICROS:
        raise Unsupported(
            "a RANGE frame of a day or more over timestamps is supported in the time zone UTC only"
        )
    # If a key plus the offset overflows the type, Spark's result depends on the mode and on the rows that follow. Short
    # types are declined here, because overflow is likely; for longer types, the operator checks the values.
    short = dtype in (t.BYTE, t.SHORT)
    if short or (t.is_decimal(dtype) and dtype.precision > NARROW_PRECISION):
        raise Unsupported(f"a RANGE frame with an offset over {t.spark_name(dtype)} is not supported")


def check_months(dtype: pa.DataType) -> None:
    """Raise Unsupported for keys that months cannot be added to in a RANGE frame."""
    if dtype != t.DATE and not pa.types.is_timestamp(dtype):
        raise Unsupported(f"a RANGE frame of months over {t.spark_name(dtype)} is not supported")
    if _has_clock_changes(dtype):
        raise Unsupported("a RANGE frame of months over timestamps is supported in the time zone UTC only")


def _has_clock_changes(dtype: pa.DataType) -> bool:
    """Return whether values are timestamps of a time zone whose days may have more or less than 24 hours."""
    return bool(pa.types.is_timestamp(dtype)) and dtype.tz not in (None, "UTC", "Etc/UTC", "Z", "GMT")


def in_days(offset: Literal) -> Literal:
    """Convert a day-time interval to the int of days that is added to dates; raises Unsupported for parts of a day."""
    days, rest = divmod(int(offset.value), DAY_MICROS)
    if rest:
        raise Unsupported(f"a RANGE frame over dates with the bound {offset} is not supported")
    return Literal(days, t.INT)


WHOLE_PARTITION = Frame(FrameUnit.ROWS, None, None)
UP_TO_PEERS = Frame()  # the default with ORDER BY
UP_TO_ROW = Frame(FrameUnit.ROWS, None, Literal(0, pa.int32()))


@dataclass(frozen=True)
class WindowCall(Expr):
    """``function(args) [IGNORE NULLS] OVER (... frame)``; build it with ``WindowCall.of``.

    The partition and order belong to the Window node. ``function`` is a window function or an aggregate function.
    """

    function: str
    args: tuple[Expr, ...]
    type: pa.DataType
    frame: Frame = WHOLE_PARTITION
    ignore_nulls: bool = False
    mode: EvalMode = EvalMode.ANSI

    @classmethod
    def of(
        cls,
        name: str,
        *args: Expr,
        frame: Frame = WHOLE_PARTITION,
        ignore_nulls: bool = False,
        mode: EvalMode = EvalMode.ANSI,
        dtype: pa.DataType | None = None,
        condition: Expr | None = None,
    ) -> WindowCall:
        """Build a call whose type the registry derives; raises PlanError for a wrong arity or argument type.

        condition: the condition of FILTER (WHERE ...) of an aggregate. For first_value and last_value, it becomes the
        second argument. All other aggregates ignore NULL arguments, so their arguments become NULL in the rows that the
        condition excludes. Raises Unsupported if an argument can raise, because Spark evaluates it for these rows, too.
        """
        entry = window_function(name) or aggregate_function(name)
        is_frame_end = isinstance(entry, WindowFunction) and entry.is_frame_end
        entry.check_arity(len(args))
        if condition is not None:
            if isinstance(entry, WindowFunction) and not is_frame_end:
                raise PlanError(f"{name} is not an aggregate function, so it cannot have a FILTER")
            if any(map(can_raise, args)):
                raise Unsupported(
                    "FILTER over a window with an argument that may raise is not supported: Spark evaluates all rows"
                )
            if is_frame_end:
                args = (*args, condition)
            else:
                values = args or (Literal(1, pa.int32()),)
                constants = () if isinstance(entry, WindowFunction) else entry.constants
                args = tuple(a if i in constants else Case(((condition, a),)) for i, a in enumerate(values))
        if not isinstance(entry, WindowFunction) and not entry.over_windows:
            raise Unsupported(f"{entry.calls.name_of(entry.name)} over a window is not supported")
        given = args[:1] if is_frame_end else args
        derived = entry.result([a.dtype for a in given]) if dtype is None else dtype
        return cls(entry.name, args, derived, frame, ignore_nulls, mode)

    @property
    def ranks_rows(self) -> bool:
        """True for ROW_NUMBER, RANK, and DENSE_RANK, whose values for the first rows do not depend on later rows."""
        return self.entry is not None and self.entry.supports_group_limit

    @property
    def entry(self) -> WindowFunction | None:
        """The window function; None for an aggregate."""
        return window_function(self.function)

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.type

    @property
    @override
    def nullable(self) -> bool:
        entry = self.entry
        if entry is None:
            return aggregate_function(self.function).nullable
        if entry.is_offset and len(self.args) == 3:
            return self.args[0].nullable or self.args[2].nullable
        return entry.nullable

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return self.args

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, args=tuple(children))

    def __str__(self) -> str:
        entry = self.entry
        is_frame_end = entry is not None and entry.is_frame_end
        args, only = (self.args[:1], self.args[1:]) if is_frame_end else (self.args, ())
        inner = ", ".join(map(str, args))
        if not self.args and entry is None:
            inner = "*"
        text = f"{self.function.upper()}({inner}){' IGNORE NULLS' if self.ignore_nulls else ''}"
        text += "".join(f" FILTER (WHERE {c})" for c in only)
        framed = entry is None or entry.framed
        return f"{text} OVER ({self.frame})" if framed else f"{text} OVER ()"
