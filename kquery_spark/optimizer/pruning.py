"""Which splits can hold a row that passes the pushed filters, judged by their statistics."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import compress
from typing import Any

import pyarrow as pa

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.expr import Call, Column, Expr, InList, Literal, columns_of
from kquery_spark.logical.folders import decided, folder_values
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
    if not source.columnar:
        return _remaining(source, filters)
    # estimates, strategy and placement ask for the same splits
    return list(source.once(("prune", *filters), lambda: _remaining(source, filters)))


def _remaining(source: Source, filters: Sequence[Expr]) -> list[Split]:
    kept = source.splits()
    for condition in filters:
        kept = list(compress(kept, _possible(source, kept, condition)))
    return kept


def sized_splits(source: Source, filters: Sequence[Expr], columns: Sequence[str]) -> list[Split]:
    """The splits that remain, their bytes those of just these columns."""
    if not source.columnar:
        return prune(source, filters)
    return list(source.once(("sized", tuple(filters), *columns), lambda: _sized(source, filters, columns)))


def _sized(source: Source, filters: Sequence[Expr], columns: Sequence[str]) -> list[Split]:
    whole = sum(s.nbytes for s in source.splits())
    wanted = source.column_bytes(list(dict.fromkeys([*columns, *sorted(columns_of(*filters))])))
    share = min(1.0, wanted / whole) if whole else 1.0
    return [Split(s.file, s.pieces, s.rows, int(s.nbytes * share), s.bounds) for s in prune(source, filters)]


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


def _possible(source: Source, splits: Sequence[Split], expr: Expr) -> list[bool]:
    """Whether a row of each split can pass."""
    match expr:
        case Call(function="and"):
            return [
                all(each) for each in zip(*(_possible(source, splits, a) for a in expr.args), strict=True)
            ]
        case Call(function="or"):
            return [
                any(each) for each in zip(*(_possible(source, splits, a) for a in expr.args), strict=True)
            ]
        case Call(function="isnotnull", args=(Column() as column,)):
            found = [source.ranges(s, column.name) for s in splits]
            return [
                r is None or r.nulls is None or r.nulls < s.rows for s, r in zip(splits, found, strict=True)
            ]
        case Call(function="isnull", args=(Column() as column,)):
            return [_may_have_null(source.ranges(s, column.name)) for s in splits]
        case Call(function=name, args=(Column() as column, Literal() as value)) if name in _FLIPPED:
            return _compare(source, splits, name, column, value)
        case Call(function=name, args=(Literal() as value, Column() as column)) if name in _FLIPPED:
            return _compare(source, splits, _FLIPPED[name], column, value)
        case InList(child=Column() as column):
            each_value = [_compare(source, splits, "eq", column, v) for v in expr.values]
            return (
                [any(each) for each in zip(*each_value, strict=True)] if each_value else [False] * len(splits)
            )
    return _by_folder(source, splits, expr)


def _by_folder(source: Source, splits: Sequence[Split], expr: Expr) -> list[bool]:
    values = folder_values(source, expr)
    if values is not None:
        with suppress(ExecutionError, Unsupported):
            verdicts = decided(expr, values)
            return [verdicts[values[s.file]] is True for s in splits]
    return [True] * len(splits)


def _may_have_null(found: ColumnRange | None) -> bool:
    return found is None or found.nulls is None or found.nulls > 0


def _compare(source: Source, splits: Sequence[Split], op: str, column: Column, value: Literal) -> list[bool]:
    found = [source.ranges(s, column.name) for s in splits]
    if op == "eq_null_safe":
        if value.value is None:
            return [_may_have_null(r) for r in found]
        op = "eq"
    if value.value is None:
        return [False] * len(splits)
    literal = value.value.encode() if isinstance(value.value, str) else value.value
    if column.dtype != value.dtype or isinstance(literal, bool):
        return [True] * len(splits)
    if t.is_fractional(column.dtype) and (literal != literal or op not in ("lt", "lteq")):
        return [True] * len(splits)  # NaN is above every statistic
    return [_overlaps(r, op, literal, column.dtype) for r in found]


def _overlaps(found: ColumnRange | None, op: str, literal: Any, dtype: pa.DataType) -> bool:
    if found is None or found.low is None:
        return True
    low, high = comparable(found.low, dtype), comparable(found.high, dtype)
    if low is None or high is None or type(low) is not type(literal):
        return True
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
