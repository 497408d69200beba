"""Prunes the scan below ORDER BY ... LIMIT by row-group and page statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pyarrow as pa

from kquery_spark.expr import Call, Column, Expr, Literal, SortKey
from kquery_spark.expr.properties import is_pure
from kquery_spark.logical import Limit, LogicalPlan, Projection, Scan, Sort
from kquery_spark.logical.plan import with_new_children
from kquery_spark.logical.pruning import comparable, has_integer_order, needed_filters
from kquery_spark.sources.base import ColumnRange, Source, Split

# Page statistics are read if at most this number of splits can contain the first rows.
_MAX_SAMPLED_SPLITS = 4
_MAX_REMAINING_ROW_SHARE = 0.5  # a filter that leaves a larger share of all rows is not worth its evaluation


def top_k_bounds(plan: LogicalPlan) -> LogicalPlan:
    """Add a filter to the scan that the first rows of the order pass for sure, and that prunes most other rows:

        Limit: 3                                     Limit: 3
          Sort: #id DESC                       ->      Sort: #id DESC
            Scan: t                                      Scan: t; filters=[#id >= 900]

    Suppose the statistics of ``t`` say that one row group has 100 rows with ids from 900 to 999. Then the three largest ids
    are at least 900, wherever they are. Row groups with a maximum below 900 are never read.

    The parts that are compared are splits (row groups or partition directories), and pages if few splits can have the first
    rows. All rows of the scan have to reach the sort. So only pure projections may be in between, and filters of the scan
    are allowed only if they hold for every row.
    """
    plan = with_new_children(plan, [top_k_bounds(c) for c in plan.children])
    if isinstance(plan, Limit) and plan.count and isinstance(plan.child, Sort):
        key, pure = plan.child.keys[0], all(is_pure(k.expr) for k in plan.child.keys)
        if isinstance(key.expr, Column) and has_integer_order(key.expr.dtype) and pure:
            bounded = _add_bound(plan.child.child, key.expr.name, key, plan.count + plan.offset)
            if bounded is not None:
                return replace(plan, child=replace(plan.child, child=bounded))
    return plan


def _add_bound(plan: LogicalPlan, name: str, key: SortKey, rows: int) -> LogicalPlan | None:
    """Return the plan with the filter added to its scan; None if no filter is useful."""
    if isinstance(plan, Projection):
        source = plan.definitions[name]
        if not isinstance(source, Column) or not all(map(is_pure, plan.expressions)):
            return None
        below = _add_bound(plan.child, source.name, key, rows)
        return None if below is None else plan.with_children([below])
    if not isinstance(plan, Scan) or not _reads_all_rows(plan):
        return None
    source_, order = plan.source, (key.ascending, key.nulls_first)
    bound = source_.once(("bound", name, *order, rows), lambda: _find_bound(source_, name, *order, rows))
    return None if bound is None else replace(plan, filters=(*plan.filters, bound))


def _reads_all_rows(scan: Scan) -> bool:
    """True if the statistics prove that every row passes all filters."""
    return not scan.filters or not needed_filters(scan.source, scan.source.splits(), scan.filters)


@dataclass(frozen=True)
class _Part:
    """A part of the rows, with the positions of its first and last sort key in the order.

    A position is the key itself, or the negated key for a descending order, so that smaller positions always come first.
    ``keys`` is the number of rows that surely have a key that is not NULL.
    """

    first: int
    last: int
    keys: int
    rows: int


def _find_bound(source: Source, name: str, ascending: bool, nulls_first: bool, rows: int) -> Expr | None:
    """Return a condition that the first ``rows`` rows by a column pass, and few others; None if there is none."""
    if source.row_count() is None:  # the row counts of the splits are only upper bounds
        return None
    field = source.schema.field(name)
    parts = _finer_parts(source, _Order(name, field.type, ascending), rows)
    last = _last_position(parts, rows)
    if last is None or not _leaves_out_enough(source, parts, last):
        return None
    column = Column(name, field.type, field.nullable)
    # A position in descending order is a negated key.
    value = Literal(last if ascending else -last, field.type)
    # Rows with equal keys at the bound stay, because the sort may prefer any of them by its further keys.
    bound = Call.of("lteq" if ascending else "gteq", column, value)
    has_nulls = any(part is None or part.keys < part.rows for part in parts)
    return Call.of("or", Call.of("isnull", column), bound) if nulls_first and has_nulls else bound


def _leaves_out_enough(source: Source, parts: Sequence[_Part | None], last: int) -> bool:
    """True if enough rows are in parts that lie entirely after the position ``last``, which are pruned."""
    total = sum(split.rows for split in source.splits())
    left_out = sum(part.rows for part in parts if part is not None and part.first > last)
    return total - left_out <= _MAX_REMAINING_ROW_SHARE * total


@dataclass(frozen=True)
class _Order:
    """The order by one column. It converts the statistics of parts to positions in the order."""

    name: str
    dtype: pa.DataType
    ascending: bool

    def part(self, statistics: ColumnRange | None, rows: int) -> _Part | None:
        """Return the part with these statistics; None if they are missing."""
        if statistics is None:
            return None
        low, high = comparable(statistics.low, self.dtype), comparable(statistics.high, self.dtype)
        if low is None or high is None:
            return None
        # If the number of NULLs is unknown, almost all rows may be NULL, so no key is counted.
        keys = 0 if statistics.nulls is None else rows - statistics.nulls
        return _Part(low, high, keys, rows) if self.ascending else _Part(-high, -low, keys, rows)


def _finer_parts(source: Source, order: _Order, rows: int) -> list[_Part | None]:
    """Return the splits as parts. If only a few of them can contain the first rows, these are replaced by their pages."""
    by_split = {split: order.part(source.ranges(split, order.name), split.rows) for split in source.splits()}
    last = _last_position(list(by_split.values()), rows)
    # Splits that start after the position cannot contain the first rows.
    near = [s for s, part in by_split.items() if part is None or last is None or part.first <= last]
    parts = list(by_split.values())
    if not source.addressable or len(near) > _MAX_SAMPLED_SPLITS:
        return parts
    for split in near:
        pages = _page_parts(source, split, order)
        if pages is not None:
            parts.remove(by_split[split])
            parts += pages
    return parts


def _page_parts(source: Source, split: Split, order: _Order) -> list[_Part | None] | None:
    """Return the pages of a split as parts; None if it has more than one piece, or no page statistics."""
    pages = source.page_statistics(split, [order.name]) if len(split.pieces) == 1 else None
    if pages is None:
        return None
    return list(map(order.part, pages.ranges[order.name], np.diff(pages.starts).tolist()))


def _last_position(parts: Sequence[_Part | None], rows: int) -> int | None:
    """Return a position up to which there are at least ``rows`` keys; None if the statistics do not prove any.

    The parts are taken in the order of their last positions. With 50 keys up to 10 and 100 keys up to 30, the result for 60
    rows is 30: at least 150 keys are at or before position 30.
    """
    known = sorted((part for part in parts if part is not None), key=lambda part: part.last)
    for part, keys in zip(known, accumulate(part.keys for part in known), strict=True):
        if keys >= rows:
            return part.last
    return None
