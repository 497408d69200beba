"""The dynamic filter of a top-k: skips rows that sort after the first k rows so far.

For ``ORDER BY x LIMIT 3`` with the rows 5, 9, 2, 7 so far, the third row is 7: a later row can only be among the first three
if its x is less than 7. DataFusion has the same filter (the dynamic filter of its TopK).

Positions make all orders alike. The position of a key is a pair (part, integer) that rises in the order: part 0 for NULLs
that come first, 1 for values, 2 for NULLs that come last. For a descending order, the integer is ``~value``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.logical.pruning import comparable, has_integer_order
from kquery_spark.physical.aggregates.reduce import ordered_integers
from kquery_spark.physical.dynamic_filters.runtime_filter import RuntimeFilter
from kquery_spark.physical.sorting.string_parts import string_prefixes
from kquery_spark.sources.base import ColumnRange
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, validity

_MIN_ROWS_PER_LIMIT_ROW = 64  # with more rows per row of the limit, a sample excludes most of them first


@dataclass
class KthRow:
    """The position of the k-th row so far, by the first sort key; None until there are k rows."""

    position: tuple[int, int] | None = None

    def learn(self, position: tuple[int, int]) -> None:
        """Record that k rows are at this position or before it. The earliest position of all remains."""
        if self.position is None or position < self.position:
            self.position = position


@dataclass
class FirstRowsFilter(RuntimeFilter):
    """Passes the rows that can still be among the first k rows, judged by the first sort key.

    ties: rows with the same key as the k-th row pass as well, because there are further sort keys, or because only the first
    bytes of strings are compared. rows: k, if every row that passes will reach the top-k; the filter then also learns from
    the rows that it sees, before the top-k does. None if a filter or a join in between may drop rows.
    """

    tightens: ClassVar[bool] = True

    ascending: bool
    nulls_first: bool
    ties: bool
    rows: int | None
    kth_row: KthRow = field(default_factory=KthRow)

    @property
    @override
    def is_on(self) -> bool:
        position = self.kth_row.position
        excludes = position is not None and not (position[0] == 2 and self.ties)
        return (excludes or self.rows is not None) and super().is_on

    @property
    @override
    def is_quick(self) -> bool:
        return True

    @property
    @override
    def is_row_wise(self) -> bool:
        return self.rows is None  # otherwise it selects the first k of the rows that it sees

    @override
    def through_filter(self) -> RuntimeFilter:
        return replace(self, rows=None)

    def learn(self, key: Vector) -> None:
        """Learn from the sort key of the k-th row. key: a vector with this one value."""
        ranks = self._ranks(key)
        if ranks is not None:
            self.kth_row.learn(self._null_position if key.data.null_count else (1, int(ranks[0])))

    @property
    def _null_position(self) -> tuple[int, int]:
        """The position of NULL."""
        return (0 if self.nulls_first else 2), 0

    def _ranks(self, key: Vector) -> Int64s | None:
        """Return integers that rise in the sort order, arbitrary for NULL; None for types without such integers."""
        values = _string_ranks(key) if key.dtype == t.STRING else ordered_integers(key)
        return values if values is None or self.ascending else ~values

    @override
    def conditions(self, columns: Sequence[Column]) -> list[Expr]:
        """Return the bound as a condition, for types whose statistics are in the order of the key."""
        (column,) = columns
        if self.kth_row.position is None or not has_integer_order(column.dtype):
            return []
        part, value = self.kth_row.position
        if part == 2:
            # The k-th row has a NULL at the end, so all values pass. With ties, NULLs can come first by further keys.
            return [] if self.ties else [Call.of("isnotnull", column)]
        if part == 0:
            return [Call.of("isnull", column)]
        bound = Literal(value if self.ascending else ~value, column.dtype)
        before = Call.of(("lt" if self.ascending else "gt") + ("eq" if self.ties else ""), column, bound)
        return [Call.of("or", Call.of("isnull", column), before) if self.nulls_first else before]

    def reading_order(self, column: Column, ranges: Sequence[ColumnRange | None]) -> list[int] | None:
        """Return the best order in which to read the parts of a source, by their statistics; None if some are unknown.

        Parts that may have the first rows come first, so that the bound becomes tight early.
        """
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
        hits = self._rows_before(ranks, valid)
        if self.rows is None or np.count_nonzero(hits) <= self.rows:
            return hits
        rows = np.flatnonzero(hits)
        # The k-th smallest key of a sample is an upper bound of the k-th smallest key of all rows, and it excludes most rows
        # before the exact selection.
        if valid is None and len(rows) > _MIN_ROWS_PER_LIMIT_ROW * self.rows:
            some = ranks[rows[:: len(rows) // (_MIN_ROWS_PER_LIMIT_ROW * self.rows)]]
            rows = rows[ranks[rows] <= np.partition(some, self.rows - 1)[self.rows - 1]]
        return self._first(ranks, valid, rows, self.rows)

    def _rows_before(self, ranks: Int64s, valid: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that are before the known position, or, with ``ties``, at it."""
        if self.kth_row.position is None:
            return np.ones(len(ranks), np.bool_)
        part, kth_key = self.kth_row.position
        if part != 1:
            hits, nulls = np.full(len(ranks), part == 2), self.ties
        else:
            hits, nulls = (ranks <= kth_key if self.ties else ranks < kth_key), self.nulls_first
        return hits if valid is None else np.where(valid, hits, nulls)

    def _first(
        self, ranks: Int64s, valid: npt.NDArray[np.bool_] | None, rows: Int64s, count: int
    ) -> npt.NDArray[np.bool_]:
        """Return a mask of the first ``count`` of the given rows (and of those that tie with the last one), and learn.

        NULLs form one block at one end of the order. The blocks are taken in order until ``count`` is reached. Within the
        values, ``np.partition`` finds the last key that is needed in linear time.
        """
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
                self.kth_row.learn(self._null_position)
                equal = nulls
            else:
                present_keys = ranks[values]
                kth_key = np.partition(present_keys, left - 1)[left - 1]
                self.kth_row.learn((1, int(kth_key)))
                hits[values[present_keys < kth_key]] = True
                left -= int(np.count_nonzero(present_keys < kth_key))
                equal = values[present_keys == kth_key]
            hits[equal if self.ties else equal[:left]] = True
            break
        return hits


def _string_ranks(key: Vector) -> Int64s:
    if not key.is_dictionary:
        return string_prefixes(key.data)
    ranks = string_prefixes(key.data.dictionary)
    indices = key.data.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return ranks.take(indices) if len(ranks) else np.zeros(len(indices), np.int64)
