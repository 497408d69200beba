"""The first rows of an order are sought only where statistics say they are."""

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

_MAX_SAMPLED_SPLITS = 4  # may have the first rows, for parts of these to be looked at
_MAX_REMAINING_ROW_SHARE = 0.5  # share of all rows that are left, for a bound to be worth its test


def top_k_bounds(plan: LogicalPlan) -> LogicalPlan:
    """``Limit: 3`` over ``Sort: #id DESC`` over a scan whose last part has 100 rows from 900 on adds ``#id >= 900``.

    Parts are row groups or folders, and pages where there are few of these. All rows have to come to the sort, so there
    are only projections between, and nothing that can raise for the rows left out.
    """
    plan = with_new_children(plan, [top_k_bounds(c) for c in plan.children])
    if isinstance(plan, Limit) and plan.count and isinstance(plan.child, Sort):
        key, pure = plan.child.keys[0], all(is_pure(k.expr) for k in plan.child.keys)
        if isinstance(key.expr, Column) and has_integer_order(key.expr.dtype) and pure:
            bounded = _bounded(plan.child.child, key.expr.name, key, plan.count + plan.offset)
            if bounded is not None:
                return replace(plan, child=replace(plan.child, child=bounded))
    return plan


def _bounded(plan: LogicalPlan, name: str, key: SortKey, rows: int) -> LogicalPlan | None:
    """The plan over a scan with a bound for the first rows; None where there is none to be had."""
    if isinstance(plan, Projection):
        source = plan.definitions[name]
        if not isinstance(source, Column) or not all(map(is_pure, plan.expressions)):
            return None
        below = _bounded(plan.child, source.name, key, rows)
        return None if below is None else plan.with_children([below])
    if not isinstance(plan, Scan) or not _reads_all_rows(plan):
        return None
    source_, order = plan.source, (key.ascending, key.nulls_first)
    bound = source_.once(("bound", name, *order, rows), lambda: _bound(source_, name, *order, rows))
    return None if bound is None else replace(plan, filters=(*plan.filters, bound))


def _reads_all_rows(scan: Scan) -> bool:
    """Whether statistics prove all filters true for every row."""
    return not scan.filters or not needed_filters(scan.source, scan.source.splits(), scan.filters)


@dataclass(frozen=True)
class _Part:
    """Rows of which the key is between two places of the order, which rise in it; ``keys`` of them are sure to have one."""

    first: int
    last: int
    keys: int
    rows: int


def _bound(source: Source, name: str, ascending: bool, nulls_first: bool, rows: int) -> Expr | None:
    """A condition that the first rows by a column meet, and few others."""
    if source.row_count() is None:  # rows of its splits may be fewer than they say
        return None
    field = source.schema.field(name)
    parts = _finer_parts(source, _Order(name, field.type, ascending), rows)
    last = _last(parts, rows)
    if last is None or not _leaves_out_enough(source, parts, last):
        return None
    column = Column(name, field.type, field.nullable)
    value = Literal(last if ascending else -last, field.type)
    bound = Call.of("lteq" if ascending else "gteq", column, value)
    has_nulls = any(part is None or part.keys < part.rows for part in parts)
    return Call.of("or", Call.of("isnull", column), bound) if nulls_first and has_nulls else bound


def _leaves_out_enough(source: Source, parts: Sequence[_Part | None], last: int) -> bool:
    """Whether the rows that are not after ``last`` are few enough for the condition to be worth it."""
    total = sum(split.rows for split in source.splits())
    left_out = sum(part.rows for part in parts if part is not None and part.first > last)
    return total - left_out <= _MAX_REMAINING_ROW_SHARE * total


@dataclass(frozen=True)
class _Order:
    """An order by one column, and what statistics say of a part of the rows in it."""

    name: str
    dtype: pa.DataType
    ascending: bool

    def part(self, statistics: ColumnRange | None, rows: int) -> _Part | None:
        """None where statistics say nothing."""
        if statistics is None:
            return None
        low, high = comparable(statistics.low, self.dtype), comparable(statistics.high, self.dtype)
        if low is None or high is None:
            return None
        keys = 0 if statistics.nulls is None else rows - statistics.nulls
        return _Part(low, high, keys, rows) if self.ascending else _Part(-high, -low, keys, rows)


def _finer_parts(source: Source, order: _Order, rows: int) -> list[_Part | None]:
    """The source's splits as parts; those that may have the first rows, if they are few, as their pages."""
    by_split = {split: order.part(source.ranges(split, order.name), split.rows) for split in source.splits()}
    last = _last(list(by_split.values()), rows)
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
    """The pages of a split as parts; None if it has more than one piece or nothing is known of its pages."""
    pages = source.stretches(split, [order.name]) if len(split.pieces) == 1 else None
    if pages is None:
        return None
    return list(map(order.part, pages.ranges[order.name], np.diff(pages.starts).tolist()))


def _last(parts: Sequence[_Part | None], rows: int) -> int | None:
    """The place in the order up to which there are so many keys."""
    known = sorted((part for part in parts if part is not None), key=lambda part: part.last)
    for part, keys in zip(known, accumulate(part.keys for part in known), strict=True):
        if keys >= rows:
            return part.last
    return None
