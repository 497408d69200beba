"""Dynamic filters: a join or a top-k drops rows already in the scan, before the other columns are decoded.

When a hash join has built its table, the keys are known. For ``lines JOIN (orders WHERE day = ...) ON l.order_id = o.id``
with 200 build rows whose ids are between 9,000 and 9,900:

1. ``conditions`` (``order_id >= 9000 AND order_id <= 9900``) prune row groups and pages of ``lines`` by statistics.
2. The scan decodes ``order_id``, and ``mask`` looks up each value in the join table.
3. The other columns are decoded only for the rows that pass.

A join by several columns whose probe side is itself a join, ``(lines JOIN orders) JOIN shops ON region AND product``, may
need columns of different scans. Then each scan gets a filter for its column alone (``by_column``).

A top-k works alike: once it has k rows, later rows have to be better than its worst one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from kquery_spark.expr import Call, Column, Expr, Literal
from kquery_spark.logical.join import JoinKind
from kquery_spark.physical.joins.column_matches import ColumnMatches
from kquery_spark.physical.joins.join_table import JoinTable
from kquery_spark.types.vector import Vector

_TRIAL_ROWS = 200_000  # the filter is always applied to this number of rows
_MAX_PASSED_ROW_SHARE = 0.6  # afterwards it is switched off if a larger share of the rows passed


@dataclass
class RuntimeFilter(ABC):
    """Keeps the rows that an operator further up needs, decided by the values of ``columns``.

    It switches itself off if most rows of a trial pass.

    No operator pushes it below an expression that can raise: Spark may evaluate the expression for the rows that the filter
    drops, too. A shuffled join does so for the rows of both sides, and a broadcast join for those of its build side.
    """

    tightens: ClassVar[bool] = False
    """True if the rows that were read decide which later rows pass. The scan then reads small splits one by one."""

    columns: tuple[str, ...]
    seen: int = field(default=0, kw_only=True)
    passed: int = field(default=0, kw_only=True)

    @property
    def is_on(self) -> bool:
        """True while the filter drops enough rows to be worth its time."""
        return self.seen < _TRIAL_ROWS or self.passed <= _MAX_PASSED_ROW_SHARE * self.seen

    def mask(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        """Return True for the rows that pass, and count them."""
        hits = self._hits(keys, num_rows)
        self.count(num_rows, int(np.count_nonzero(hits)))
        return hits

    def count(self, seen: int, passed: int) -> None:
        """Add to the rows seen and the rows that passed."""
        self.seen += seen
        self.passed += passed

    def passing_values(self, column_index: int, values: Vector) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the values of ``columns[column_index]`` whose rows pass, regardless of the other columns.

        A row passes if its value in any of the columns does. None if the filter cannot be evaluated column by column, or
        if it is not ``is_row_wise``: the scan evaluates values before its own conditions.
        """
        return None

    def by_column(self) -> list[RuntimeFilter]:
        """Return filters on single columns that every passing row passes; an empty list if there are none.

        They are for plans in which different scans have the columns.
        """
        return []

    @property
    def is_row_wise(self) -> bool:
        """True if a row passes or not regardless of the other rows that the filter sees.

        Only then may the filter see rows that other filters of the scan will drop.
        """
        return True

    def through_filter(self) -> RuntimeFilter:
        """Return the filter to push below an operator that drops rows."""
        return self

    @property
    @abstractmethod
    def is_quick(self) -> bool:
        """True if ``mask`` takes little time per row."""

    @abstractmethod
    def conditions(self, columns: Sequence[Column]) -> list[Expr]:
        """Return conditions that every passing row satisfies, for pruning by statistics. columns: those of the source."""

    @abstractmethod
    def _hits(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]: ...


@dataclass
class MatchFilter(RuntimeFilter):
    """The filter of a join: keeps the rows whose keys, or whose value of one key column, occur in the join table."""

    table: JoinTable | ColumnMatches

    @property
    @override
    def is_quick(self) -> bool:
        return self.table.is_direct

    @override
    def conditions(self, columns: Sequence[Column]) -> list[Expr]:
        """Each key is between the lowest and the highest value of the build side."""
        terms: list[Expr] = []
        for column, ends in zip(columns, self.table.ranges, strict=True):
            if ends is not None:
                low, high = (Literal(end, column.dtype) for end in ends)
                terms += [Call.of("gteq", column, low), Call.of("lteq", column, high)]
        return terms

    @override
    def passing_values(self, column_index: int, values: Vector) -> npt.NDArray[np.bool_] | None:
        return self.table.contains([values], len(values.data)) if len(self.columns) == 1 else None

    @override
    def by_column(self) -> list[RuntimeFilter]:
        """Return one filter for each key column."""
        if not isinstance(self.table, JoinTable) or len(self.columns) == 1:
            return []
        return column_filters(self.table, self.columns)

    def _hits(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        return self.table.contains(keys, num_rows)


def drops_unmatched(kind: JoinKind, build_is_left: bool) -> bool:
    """True if the join never outputs a probe row without a match."""
    if kind is JoinKind.INNER:
        return True
    if build_is_left:
        return kind in (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.EXISTENCE)
    return kind in (JoinKind.RIGHT, JoinKind.SEMI)


def column_filters(table: JoinTable, names: Sequence[str | None]) -> list[RuntimeFilter]:
    """Return one filter for each key column of a join table that has several key columns.

    names: the names of the probe keys; None for a computed key, which gets no filter.
    """
    pairs = zip(names, table.columns, strict=True)
    return [MatchFilter((name,), column) for name, column in pairs if name is not None]


def key_names(keys: Sequence[Expr]) -> tuple[str, ...] | None:
    """Return the names of the keys if all of them are plain columns; otherwise None."""
    names = tuple(k.name for k in keys if isinstance(k, Column))
    return names if len(names) == len(keys) and names else None
