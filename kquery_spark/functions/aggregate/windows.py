"""Entries of the functions that exist only over a window. Aggregate functions, which also run over windows, are not here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.functions.call_form import ONE_COLUMN, UPPER, CallForm, register_calls
from kquery_spark.functions.registry import TypeRule, first_argument_type, fixed
from kquery_spark.types import names as t


class FrameRow(Enum):
    """The row of a frame whose value a function returns."""

    FIRST = "first"
    LAST = "last"
    NTH = "nth"


@dataclass(frozen=True)
class WindowFunction:
    """The entry of a window function.

    ordered: it needs ORDER BY. framed: it reads its frame (the others read the whole partition).
    row: the row of the frame whose value it returns.
    nullable: whether the result can be NULL.
    aggregate: the aggregate function that SQL means by the name without a window.
    constant_argument: the index of the argument that must be a constant number.
    frame_text: the frame that Spark prints if the query has none, with ``{offset}`` for the second argument.
    offset_sign: 1 if it reads a later row at a distance, -1 for an earlier row, 0 for functions that do neither.
    counts_distinct_keys: it counts distinct sort keys (dense_rank), so that a group can have many rows with a small value.
    supports_group_limit: a filter on it needs the first rows of each group only (Catalyst's WindowGroupLimit).
    calls: how calls are written in DataFrames and shown in column names.
    """

    name: str
    result: TypeRule
    catalyst: tuple[str, ...]
    arity: tuple[int, int] = (0, 0)
    ordered: bool = False
    framed: bool = False
    row: FrameRow | None = None
    nullable: bool = False
    aggregate: str = ""
    constant_argument: int | None = None
    frame_text: str = ""
    supports_group_limit: bool = False
    counts_distinct_keys: bool = False
    offset_sign: int = 0
    calls: CallForm = ONE_COLUMN

    @property
    def is_frame_end(self) -> bool:
        """True if it returns the value at an end of the frame, as FIRST and LAST do for a group."""
        return bool(self.aggregate)

    @property
    def is_offset(self) -> bool:
        """True if it reads a row at an offset: LAG and LEAD."""
        return self.offset_sign != 0

    def check_arity(self, count: int) -> None:
        """Raise PlanError unless ``count`` arguments are allowed."""
        low, high = self.arity
        if not low <= count <= high:
            raise PlanError(f"{self.name} cannot take {count} argument(s)")


def _shifted(types: Sequence[pa.DataType]) -> pa.DataType:
    if len(types) > 2 and types[2] not in (types[0], t.NULL):
        raise PlanError(
            f"the default is {t.spark_name(types[2])} where the values are {t.spark_name(types[0])}"
        )
    return types[0]


_ROWS_TO_CURRENT = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_RANGE_TO_CURRENT = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def _ranking(
    name: str, dtype: pa.DataType, catalyst: str, calls: CallForm = UPPER, supports_group_limit: bool = False
) -> WindowFunction:
    return WindowFunction(
        name,
        fixed(dtype),
        (catalyst,),
        ordered=True,
        frame_text=_ROWS_TO_CURRENT,
        supports_group_limit=supports_group_limit,
        calls=calls,
    )


def _offset(name: str, catalyst: str, sign: int, bound: str) -> WindowFunction:
    return WindowFunction(
        name,
        _shifted,
        (catalyst,),
        (1, 3),
        ordered=True,
        nullable=True,
        constant_argument=1,
        offset_sign=sign,
        frame_text=f"ROWS BETWEEN {bound} AND {bound}",
    )


def _frame_end(name: str, row: FrameRow, aggregate: str) -> WindowFunction:
    return WindowFunction(
        name,
        first_argument_type,
        (),
        (1, 1),
        framed=True,
        row=row,
        nullable=True,
        aggregate=aggregate,
    )


_ENTRIES = (
    _ranking("row_number", t.INT, "RowNumber", ONE_COLUMN, supports_group_limit=True),
    _ranking("rank", t.INT, "Rank", supports_group_limit=True),
    replace(_ranking("dense_rank", t.INT, "DenseRank", supports_group_limit=True), counts_distinct_keys=True),
    _ranking("percent_rank", t.DOUBLE, "PercentRank"),
    replace(_ranking("cume_dist", t.DOUBLE, "CumeDist", ONE_COLUMN), frame_text=_RANGE_TO_CURRENT),
    replace(_ranking("ntile", t.INT, "NTile", ONE_COLUMN), arity=(1, 1), constant_argument=0),
    _offset("lag", "Lag", -1, "-{offset} FOLLOWING"),
    _offset("lead", "Lead", 1, "{offset} FOLLOWING"),
    _frame_end("first_value", FrameRow.FIRST, "first"),
    _frame_end("last_value", FrameRow.LAST, "last"),
    WindowFunction(
        "nth_value",
        first_argument_type,
        ("NthValue",),
        (2, 2),
        framed=True,
        row=FrameRow.NTH,
        nullable=True,
        constant_argument=1,
    ),
)
_BY_NAME = {entry.name: entry for entry in _ENTRIES}
_BY_CATALYST = {cls: entry for entry in _ENTRIES for cls in entry.catalyst}
for _entry in _ENTRIES:
    register_calls(_entry.name, (), _entry.calls)


def window_function(name: str) -> WindowFunction | None:
    """The entry for a name; None if it is not a window function, for example an aggregate."""
    return _BY_NAME.get(name.lower())


def aggregate_of(name: str) -> str:
    """Return the aggregate that a window function's name means without a window; other names are returned unchanged."""
    entry = window_function(name)
    return name if entry is None or not entry.aggregate else entry.aggregate


def window_for_catalyst(cls: str) -> WindowFunction | None:
    """The entry for a Catalyst class, by its simple name."""
    return _BY_CATALYST.get(cls)


def window_functions() -> tuple[WindowFunction, ...]:
    """All entries."""
    return _ENTRIES
