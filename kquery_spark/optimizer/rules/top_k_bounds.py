"""The first rows of an order are sought only where statistics say they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import pyarrow as pa

from kquery_spark.expr import Call, Column, Expr, Literal, SortKey
from kquery_spark.expr.properties import is_harmless
from kquery_spark.logical import Limit, LogicalPlan, Projection, Scan, Sort
from kquery_spark.logical.plan import over
from kquery_spark.logical.pruning import comparable, has_integer_order, needed_filters
from kquery_spark.sources.base import ColumnRange, Source

_FEW_SPLITS = 4  # may have the first rows, for parts of these to be looked at
_MOST_ROWS = 0.5  # share of all rows that are left, for a bound to be worth its test


def top_k_bounds(plan: LogicalPlan) -> LogicalPlan:
    """``Limit: 3`` over ``Sort: #id DESC`` over a scan whose last part has 100 rows from 900 on adds ``#id >= 900``.

    Parts are row groups or folders, and pages where there are few of these. All rows have to come to the sort, so there
    are only projections between, and nothing that can raise for the rows left out.
    """
    plan = over(plan, [top_k_bounds(c) for c in plan.children])
    if isinstance(plan, Limit) and plan.count and isinstance(plan.child, Sort):
        key, harmless = plan.child.keys[0], all(is_harmless(k.expr) for k in plan.child.keys)
        if isinstance(key.expr, Column) and has_integer_order(key.expr.dtype) and harmless:
            bounded = _bounded(plan.child.child, key.expr.name, key, plan.count + plan.offset)
            if bounded is not None:
                return replace(plan, child=replace(plan.child, child=bounded))
    return plan


def _bounded(plan: LogicalPlan, name: str, key: SortKey, wanted: int) -> LogicalPlan | None:
    """The plan over a scan with a bound; None where there is none to be had."""
    match plan:
        case Projection():
            (given,) = (e.expr for e in plan.exprs if e.name == name)
            if not isinstance(given, Column) or not all(is_harmless(e.expr) for e in plan.exprs):
                return None
            below = _bounded(plan.child, given.name, key, wanted)
            return None if below is None else plan.with_children([below])
        case Scan() if not plan.filters or not needed_filters(
            plan.source, plan.source.splits(), plan.filters
        ):
            source, order = plan.source, (key.ascending, key.nulls_first)
            bound = source.once(("bound", name, *order, wanted), lambda: _bound(source, name, *order, wanted))
            return None if bound is None else replace(plan, filters=(*plan.filters, bound))
    return None


@dataclass(frozen=True)
class _Part:
    """Rows of which the key is between two places of the order, which rise in it; ``keys`` of them are sure to have one."""

    first: int
    last: int
    keys: int
    rows: int


def _bound(source: Source, name: str, ascending: bool, nulls_first: bool, wanted: int) -> Expr | None:
    """A condition that the first rows by a column meet, and few others."""
    field = source.schema.field(name)
    column = Column(name, field.type, field.nullable)
    found = {
        split: _part(source.ranges(split, name), split.rows, field.type, ascending)
        for split in source.splits()
    }
    parts = list(found.values())
    last = _last(parts, wanted)
    near = [split for split, part in found.items() if part is None or last is None or part.first <= last]
    if source.addressable and len(near) <= _FEW_SPLITS:
        for split in near:
            known = source.stretches(split, [name]) if len(split.pieces) == 1 else None
            if known is not None:
                parts.remove(found[split])
                lengths = np.diff(known.starts).tolist()
                ranges = known.ranges[name]
                parts += [
                    _part(each, rows, field.type, ascending)
                    for each, rows in zip(ranges, lengths, strict=True)
                ]
        last = _last(parts, wanted)
    if last is None:
        return None
    total = sum(split.rows for split in found)
    left_out = sum(part.rows for part in parts if part is not None and part.first > last)
    if total - left_out > _MOST_ROWS * total:
        return None
    bound = Call.of(
        "lteq" if ascending else "gteq", column, Literal(last if ascending else -last, field.type)
    )
    has_nulls = any(part is None or part.keys < part.rows for part in parts)
    return Call.of("or", Call.of("isnull", column), bound) if nulls_first and has_nulls else bound


def _part(found: ColumnRange | None, rows: int, dtype: pa.DataType, ascending: bool) -> _Part | None:
    """What statistics say; None where they say nothing."""
    low, high = (
        (None, None) if found is None else (comparable(found.low, dtype), comparable(found.high, dtype))
    )
    if found is None or low is None or high is None:
        return None
    keys = 0 if found.nulls is None else rows - found.nulls
    return _Part(low, high, keys, rows) if ascending else _Part(-high, -low, keys, rows)


def _last(parts: Sequence[_Part | None], wanted: int) -> int | None:
    """The place up to which there are as many keys as wanted."""
    known = sorted((part for part in parts if part is not None), key=lambda part: part.last)
    for part, keys in zip(known, accumulate(part.keys for part in known), strict=True):
        if keys >= wanted:
            return part.last
    return None
