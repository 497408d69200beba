"""Which splits can hold a row that passes the pushed filters, judged by their statistics."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from kquery_spark.expr import Call, Column, Expr, InList, Literal, columns_of
from kquery_spark.sources.base import ColumnRange, Source, Split
from kquery_spark.types import names as t

_EPOCH = dt.date(1970, 1, 1)
_FLIPPED = {
    "lt": "gt",
    "lteq": "gteq",
    "gt": "lt",
    "gteq": "lteq",
    "eq": "eq",
    "eq_null_safe": "eq_null_safe",
}


def prune(source: Source, filters: Sequence[Expr]) -> list[Split]:
    """The source's splits that remain; a split is dropped only when no row of it can pass."""
    if not filters:
        return source.splits()
    if source.columnar:
        return list(_remembered(_Same(source), tuple(filters)))
    return _remaining(source, filters)


def _remaining(source: Source, filters: Sequence[Expr]) -> list[Split]:
    return [s for s in source.splits() if all(_possible(source, s, f) for f in filters)]


class _Same:
    """A key that only the very same source equals: its files were listed once, so its statistics never change."""

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        self.source = source

    def __hash__(self) -> int:
        return id(self.source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.source is self.source


@lru_cache(maxsize=64)  # estimates, strategy and placement ask for the same splits, each query again
def _remembered(same: _Same, filters: tuple[Expr, ...]) -> tuple[Split, ...]:
    return tuple(_remaining(same.source, filters))


def sized_splits(source: Source, filters: Sequence[Expr], columns: Sequence[str]) -> list[Split]:
    """The splits that remain, their bytes those of just these columns."""
    kept = prune(source, filters)
    if not source.columnar:
        return kept
    whole = sum(s.nbytes for s in source.splits())
    wanted = source.column_bytes(list(dict.fromkeys([*columns, *sorted(columns_of(*filters))])))
    share = min(1.0, wanted / whole) if whole else 1.0
    return [replace(s, nbytes=int(s.nbytes * share)) for s in kept]


def needed_filters(source: Source, splits: Sequence[Split], filters: Sequence[Expr]) -> tuple[Expr, ...]:
    """The filters without those that the statistics prove true for every row: IS NOT NULL where nothing is NULL."""
    return tuple(f for f in filters if not _always(source, splits, f))


def _always(source: Source, splits: Sequence[Split], expr: Expr) -> bool:
    match expr:
        case Call(function="isnotnull", args=(Column() as column,)):
            ranges = [source.ranges(s, column.name) for s in splits]
            return all(r is not None and r.nulls == 0 for r in ranges)
        case Call(function="and"):
            return all(_always(source, splits, a) for a in expr.args)
    return False


def _possible(source: Source, split: Split, expr: Expr) -> bool:
    match expr:
        case Call(function="and"):
            return all(_possible(source, split, a) for a in expr.args)
        case Call(function="or"):
            return any(_possible(source, split, a) for a in expr.args)
        case Call(function="isnotnull", args=(Column() as column,)):
            found = source.ranges(split, column.name)
            return found is None or found.nulls is None or found.nulls < split.rows
        case Call(function="isnull", args=(Column() as column,)):
            found = source.ranges(split, column.name)
            return found is None or found.nulls is None or found.nulls > 0
        case Call(function=name, args=(Column() as column, Literal() as value)) if name in _FLIPPED:
            return _compare(source.ranges(split, column.name), name, column, value)
        case Call(function=name, args=(Literal() as value, Column() as column)) if name in _FLIPPED:
            return _compare(source.ranges(split, column.name), _FLIPPED[name], column, value)
        case InList(child=Column() as column):
            found = source.ranges(split, column.name)
            return any(_compare(found, "eq", column, v) for v in expr.values)
    return True


def _compare(found: ColumnRange | None, op: str, column: Column, value: Literal) -> bool:
    if op == "eq_null_safe":
        if value.value is None:
            return found is None or found.nulls is None or found.nulls > 0
        op = "eq"
    if value.value is None:
        return False
    if found is None or found.low is None or column.dtype != value.dtype:
        return True
    low, high = comparable(found.low, column.dtype), comparable(found.high, column.dtype)
    literal = value.value.encode() if isinstance(value.value, str) else value.value
    if low is None or high is None or type(low) is not type(literal) or isinstance(literal, bool):
        return True
    if t.is_fractional(column.dtype) and (literal != literal or op not in ("lt", "lteq")):
        return True  # NaN is above every statistic
    if op == "eq":
        return bool(low <= literal <= high)
    if op in ("lt", "lteq"):
        return bool(low < literal or (op == "lteq" and low == literal))
    return bool(high > literal or (op == "gteq" and high == literal))


def comparable(value: Any, dtype: pa.DataType) -> Any:
    """A statistic in the form literals of the type have; None when it has no such form."""
    if isinstance(value, dt.datetime):
        if not pa.types.is_timestamp(dtype):
            return None
        moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - _EPOCH).days
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and t.is_decimal(dtype):
        return Decimal(value)
    return value if isinstance(value, int | float | Decimal | bytes) else None
