"""Run-time filters: what a join or a top-k has learned drops rows already in the scan, before other columns are decoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.logical.join import JoinKind
from kquery_spark.physical.joins.join_table import JoinTable
from kquery_spark.types.vector import Vector

_TRIAL_ROWS = 200_000
_MAX_PASSED_ROW_SHARE = 0.6


@dataclass
class RuntimeFilter(ABC):
    """Keeps the rows that an operator further up needs, judged by some of their columns.

    It switches itself off once it has let most rows pass. every_row: Spark shows the rows left out to all expressions
    on the way, so a filter must not pass those that can raise; else it may pass projections, which Spark evaluates only
    for rows that have a match.
    """

    columns: tuple[str, ...]
    every_row: bool = field(default=False, kw_only=True)
    seen: int = field(default=0, kw_only=True)
    passed: int = field(default=0, kw_only=True)

    @property
    def is_on(self) -> bool:
        """Whether the filter drops enough rows to pay for its time."""
        return self.seen < _TRIAL_ROWS or self.passed <= _MAX_PASSED_ROW_SHARE * self.seen

    def mask(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        """True for the rows that pass; counts them."""
        hits = self._hits(keys, num_rows)
        self.count(num_rows, int(np.count_nonzero(hits)))
        return hits

    def count(self, seen: int, passed: int) -> None:
        """Add to the rows seen and the rows that passed."""
        self.seen += seen
        self.passed += passed

    def passing_values(self, column_index: int, values: Vector) -> npt.NDArray[np.bool_] | None:
        """True for each value of ``columns[column_index]`` whose rows pass, whatever the other columns hold.

        A row passes if the value of any of the columns does. None if the filter cannot be decided column by column.
        """
        return None

    def through_filter(self) -> RuntimeFilter:
        """The filter to push below an operator that drops rows."""
        return self

    @property
    @abstractmethod
    def is_quick(self) -> bool:
        """True if ``mask`` takes little time a row."""

    @abstractmethod
    def conditions(self, columns: Sequence[Column]) -> list[Expr]:
        """Conditions that every passing row meets, to compare with statistics; ``columns`` are the source's."""

    @abstractmethod
    def _hits(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]: ...


@dataclass
class MatchFilter(RuntimeFilter):
    """Of a join: rows whose keys have a match."""

    table: JoinTable

    @property
    @override
    def is_quick(self) -> bool:
        return self.table.is_direct

    @override
    def conditions(self, columns: Sequence[Column]) -> list[Expr]:
        """Between the lowest and the highest key."""
        terms: list[Expr] = []
        for column, ends in zip(columns, self.table.ranges, strict=True):
            if ends is not None:
                low, high = (Literal(end, column.dtype) for end in ends)
                terms += [Call.of("gteq", column, low), Call.of("lteq", column, high)]
        return terms

    @override
    def passing_values(self, column_index: int, values: Vector) -> npt.NDArray[np.bool_] | None:
        return self.table.contains([values], len(values.data)) if len(self.columns) == 1 else None

    def _hits(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        return self.table.contains(keys, num_rows)


def drops_unmatched(kind: JoinKind, build_is_left: bool) -> bool:
    """Whether a probe row without a match never comes out."""
    if kind is JoinKind.INNER:
        return True
    if build_is_left:
        return kind in (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)
    return kind in (JoinKind.RIGHT, JoinKind.SEMI)


def key_names(keys: Sequence[Expr]) -> tuple[str, ...] | None:
    """The column names of keys that are all plain columns."""
    names = tuple(k.name for k in keys if isinstance(k, Column))
    return names if len(names) == len(keys) and names else None
