"""The functions that exist only over a window; every aggregate function can be used over one, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.functions.registry import TypeRule, fixed, same
from kquery_spark.types import names as t


@dataclass(frozen=True)
class WindowFunction:
    """One window function.

    ordered: it needs ORDER BY. framed: it reads its frame (the others read the whole partition).
    value: it gives back one of its argument's values. nullable: whether the result can be NULL.
    """

    name: str
    result: TypeRule
    catalyst: tuple[str, ...]
    arity: tuple[int, int] = (0, 0)
    ordered: bool = False
    framed: bool = False
    value: bool = False
    nullable: bool = False
    aliases: tuple[str, ...] = ()

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


_ENTRIES = (
    WindowFunction("row_number", fixed(t.INT), ("RowNumber",), ordered=True),
    WindowFunction("rank", fixed(t.INT), ("Rank",), ordered=True),
    WindowFunction("dense_rank", fixed(t.INT), ("DenseRank",), ordered=True),
    WindowFunction("percent_rank", fixed(t.DOUBLE), ("PercentRank",), ordered=True),
    WindowFunction("cume_dist", fixed(t.DOUBLE), ("CumeDist",), ordered=True),
    WindowFunction("ntile", fixed(t.INT), ("NTile",), (1, 1), ordered=True),
    WindowFunction("lag", _shifted, ("Lag",), (1, 3), ordered=True, value=True, nullable=True),
    WindowFunction("lead", _shifted, ("Lead",), (1, 3), ordered=True, value=True, nullable=True),
    WindowFunction("first_value", same, (), (1, 1), framed=True, value=True, nullable=True),
    WindowFunction("last_value", same, (), (1, 1), framed=True, value=True, nullable=True),
    WindowFunction("nth_value", same, ("NthValue",), (2, 2), framed=True, value=True, nullable=True),
)
_BY_NAME = {name: entry for entry in _ENTRIES for name in (entry.name, *entry.aliases)}
_BY_CATALYST = {cls: entry for entry in _ENTRIES for cls in entry.catalyst}


def window_function(name: str) -> WindowFunction | None:
    """The entry called ``name``; None when it is no window function (an aggregate, perhaps)."""
    return _BY_NAME.get(name.lower())


def window_for_catalyst(cls: str) -> WindowFunction | None:
    """The entry for a Catalyst class, by its simple name."""
    return _BY_CATALYST.get(cls)


def window_functions() -> tuple[WindowFunction, ...]:
    """All entries."""
    return _ENTRIES
