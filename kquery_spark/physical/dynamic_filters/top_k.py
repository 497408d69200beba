"""The dynamic filter of a top-k: skips rows that sort after the first rows so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.logical.pruning import comparable, has_integer_order
from kquery_spark.physical.aggregates.reduce import ordered_integers
from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter
from kquery_spark.physical.sorting.text_order import text_prefixes
from kquery_spark.sources.base import ColumnRange
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, validity

_MIN_ROWS_PER_LIMIT_ROW = 64  # times as many rows as the limit


@dataclass
class Last:
    """Position, in the first key's order, of the last of the first rows so far, once there are as many as the limit.

    position: which part of the order the key is in (0 NULLs that come first, 1 values, 2 NULLs that come last), and among
    values an integer that rises in the order.
    """

    position: tuple[int, int] | None = None

    def learn(self, position: tuple[int, int]) -> None:
        """As many rows as the limit have this position or an earlier one."""
        if self.position is None or position < self.position:
            self.position = position


@dataclass
class FirstRowsFilter(RuntimeFilter):
    """Of the first rows in an order: those that can still be among them, by the first key.

    ties: so can rows with the last one's key, as there are further keys, or only its first bytes are looked at. rows: how
    many are asked for, where every row that passes will be there; the filter then learns from what it sees, not only from
    what it is told. DataFusion calls this a dynamic filter of TopK.
    """

    ascending: bool
    nulls_first: bool
    ties: bool
    rows: int | None
    last: Last = field(default_factory=Last)

    @property
    @override
    def is_on(self) -> bool:
        position = self.last.position
        excludes = position is not None and not (position[0] == 2 and self.ties)
        return (excludes or self.rows is not None) and super().is_on

    @property
    @override
    def is_quick(self) -> bool:
        return True

    @override
    def through_filter(self) -> RuntimeFilter:
        return replace(self, rows=None)

    def learn(self, key: Vector) -> None:
        """Learn from the first key of the last row within the limit."""
        ranks = self._ranks(key)
        if ranks is not None:
            self.last.learn(self._null_position if key.data.null_count else (1, int(ranks[0])))

    @property
    def _null_position(self) -> tuple[int, int]:
        """The position of NULL."""
        return (0 if self.nulls_first else 2), 0

    def _ranks(self, key: Vector) -> Int64s | None:
        """Integers that rise in the key's order, any for NULL; None for types without such integers."""
        values = _text_ranks(key) if key.dtype == t.STRING else ordered_integers(key)
        return values if values is None or self.ascending else ~values

    @override
    def conditions(self, columns: Sequence[Column]) -> list[Expr]:
        """Only for types whose statistics have the order of the key."""
        (column,) = columns
        if self.last.position is None or not has_integer_order(column.dtype):
            return []
        part, value = self.last.position
        if part == 2:
            return (
                [] if self.ties else [Call.of("isnotnull", column)]
            )  # other NULLs may come first by further keys
        if part == 0:
            return [Call.of("isnull", column)]
        last = Literal(value if self.ascending else ~value, column.dtype)
        before = Call.of(("lt" if self.ascending else "gt") + ("eq" if self.ties else ""), column, last)
        return [Call.of("or", Call.of("isnull", column), before) if self.nulls_first else before]

    def reading_order(self, column: Column, ranges: Sequence[ColumnRange | None]) -> list[int] | None:
        """In which order parts of a source are best read, given the statistics of each; None where not all are known."""
        if not has_integer_order(column.dtype):
            return None
        ends: list[Any] = [
            r and comparable(r.low if self.ascending else r.high, column.dtype) for r in ranges
        ]
        if None in ends:
            return None
        return sorted(range(len(ends)), key=lambda i: ends[i], reverse=not self.ascending)

    def _hits(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        (key,) = keys
        ranks = self._ranks(key)
        if ranks is None:
            return np.ones(num_rows, np.bool_)
        valid = validity(key.data)
        hits = self._before(ranks, valid)
        if self.rows is None or np.count_nonzero(hits) <= self.rows:
            return hits
        rows = np.flatnonzero(hits)
        # some of them tell of most that they come later
        if valid is None and len(rows) > _MIN_ROWS_PER_LIMIT_ROW * self.rows:
            some = ranks[rows[:: len(rows) // (_MIN_ROWS_PER_LIMIT_ROW * self.rows)]]
            rows = rows[ranks[rows] <= np.partition(some, self.rows - 1)[self.rows - 1]]
        return self._first(ranks, valid, rows, self.rows)

    def _before(self, ranks: Int64s, valid: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        """Whether each row can be among the first ones, as far as is known."""
        if self.last.position is None:
            return np.ones(len(ranks), np.bool_)
        part, last = self.last.position
        if part != 1:
            hits, nulls = np.full(len(ranks), part == 2), self.ties
        else:
            hits, nulls = (ranks <= last if self.ties else ranks < last), self.nulls_first
        return hits if valid is None else np.where(valid, hits, nulls)

    def _first(
        self, ranks: Int64s, valid: npt.NDArray[np.bool_] | None, rows: Int64s, count: int
    ) -> npt.NDArray[np.bool_]:
        """Only ``count`` of the rows, the first ones (and those that tie with the last of them)."""
        present = np.ones(len(rows), np.bool_) if valid is None else valid[rows]
        nulls, values = rows[~present], rows[present]
        hits = np.zeros(len(ranks), np.bool_)
        left = count
        for part in (nulls, values) if self.nulls_first else (values, nulls):
            if len(part) < left:
                hits[part] = True
                left -= len(part)
                continue
            if part is nulls:
                self.last.learn(self._null_position)
                equal = nulls
            else:
                present_keys = ranks[values]
                last = np.partition(present_keys, left - 1)[left - 1]
                self.last.learn((1, int(last)))
                hits[values[present_keys < last]] = True
                left -= int(np.count_nonzero(present_keys < last))
                equal = values[present_keys == last]
            hits[equal if self.ties else equal[:left]] = True
            break
        return hits


def _text_ranks(key: Vector) -> Int64s:
    if not key.is_dictionary:
        return text_prefixes(key.data)
    ranks = text_prefixes(key.data.dictionary)
    codes = key.data.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return ranks.take(codes) if len(ranks) else np.zeros(len(codes), np.int64)
