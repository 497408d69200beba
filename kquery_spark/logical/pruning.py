"""Which splits, and which rows of a split, can pass the pushed filters, judged by statistics."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import compress
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.expr import Call, Column, Expr, InList, Literal, columns_of
from kquery_spark.logical.bucket_pruning import possible_buckets
from kquery_spark.logical.directories import decided, directory_values
from kquery_spark.sources.base import ColumnRange, PageStatistics, Source, Split
from kquery_spark.types import names as t
from kquery_spark.types.units import MICRO_NANOS
from kquery_spark.types.vector import Int64s

_MAX_KEPT_ROW_SHARE = 0.7  # share of a split's rows up to which it pays to leave the others out
# for so many it is looked up how many of their rows can pass, as that decides where a query runs
_FEW_SPLITS = 4
_EPOCH = dt.date(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


def prune(source: Source, filters: Sequence[Expr]) -> list[Split]:
    """The source's splits that remain; a split is dropped only when no row of it can pass."""
    if not filters:
        return source.splits()
    if not source.columnar:
        return _remaining(source, filters)
    # estimates, strategy and placement ask for the same splits
    return list(source.once(("prune", *filters), lambda: _remaining(source, filters)))


def _remaining(source: Source, filters: Sequence[Expr]) -> list[Split]:
    remaining = _in_possible_buckets(source, filters)
    for condition in filters:
        remaining = list(compress(remaining, _possible(_Splits(source, remaining), condition)))
    return remaining


def _in_possible_buckets(source: Source, filters: Sequence[Expr]) -> list[Split]:
    splits, bucketing = source.splits(), source.bucketing
    if bucketing is None or (possible := possible_buckets(bucketing.spec, filters)) is None:
        return splits
    return [split for split in splits if possible[bucketing.files[split.file]]]


def possible_rows(
    source: Source, split: Split, filters: Sequence[Expr], late: Sequence[Expr] = ()
) -> Int64s | None:
    """Numbers of the rows of a split of one piece that can pass; None for all, also where it is hardly fewer.

    late: filters that were not known when the splits were pruned.
    """
    if not all(_possible(_Splits(source, [split]), condition)[0] for condition in late):
        return np.zeros(0, np.int64)
    filters = [*filters, *late]
    known = source.page_statistics(split, sorted(columns_of(*filters)))
    if known is None:
        return None
    lengths = np.diff(known.starts)
    page_statistics = _Stretches(known, lengths.tolist())
    possible = np.ones(len(lengths), np.bool_)
    for condition in filters:
        possible &= np.array(_possible(page_statistics, condition), np.bool_)
    if lengths[possible].sum() > _MAX_KEPT_ROW_SHARE * known.starts[-1]:
        return None
    return np.flatnonzero(np.repeat(possible, lengths))


def sized_splits(source: Source, filters: Sequence[Expr], columns: Sequence[str]) -> list[Split]:
    """The splits that remain, their bytes those of just these columns."""
    if not source.columnar:
        return prune(source, filters)
    return list(source.once(("sized", tuple(filters), *columns), lambda: _sized(source, filters, columns)))


def _sized(source: Source, filters: Sequence[Expr], columns: Sequence[str]) -> list[Split]:
    whole = sum(s.nbytes for s in source.splits())
    read_bytes = source.column_bytes(list(dict.fromkeys([*columns, *sorted(columns_of(*filters))])))
    share = min(1.0, read_bytes / whole) if whole else 1.0
    splits = prune(source, filters)
    shares = [
        share * _possible_share(source, s, filters) if len(splits) <= _FEW_SPLITS else share for s in splits
    ]
    return [replace(s, nbytes=int(s.nbytes * part)) for s, part in zip(splits, shares, strict=True)]


def _possible_share(source: Source, split: Split, filters: Sequence[Expr]) -> float:
    """The share of a split's rows that can pass."""
    if not filters or not source.addressable or not split.rows or len(split.pieces) != 1:
        return 1.0
    rows = possible_rows(source, split, filters)
    return 1.0 if rows is None else len(rows) / split.rows


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


class _Parts(Protocol):
    """Parts of a source whose statistics are looked at."""

    @property
    def rows(self) -> list[int]:
        """Rows of each part."""

    def ranges(self, column: str) -> Sequence[ColumnRange | None]:
        """Statistics of a column in each part."""

    def by_directory(self, expr: Expr) -> list[bool]:
        """Whether the partition columns let a row of each part pass."""


@dataclass(frozen=True)
class _Splits:
    source: Source
    splits: Sequence[Split]

    @property
    def rows(self) -> list[int]:
        return [s.rows for s in self.splits]

    def ranges(self, column: str) -> Sequence[ColumnRange | None]:
        return [self.source.ranges(s, column) for s in self.splits]

    def by_directory(self, expr: Expr) -> list[bool]:
        values = directory_values(self.source, expr)
        if values is not None:
            with suppress(ExecutionError, Unsupported):
                verdicts = decided(expr, values)
                return [verdicts[values[s.file]] is True for s in self.splits]
        return [True] * len(self.splits)


@dataclass(frozen=True)
class _Stretches:
    """Those of one split, of which the directory was looked at."""

    known: PageStatistics
    rows: list[int]

    def ranges(self, column: str) -> Sequence[ColumnRange | None]:
        return self.known.ranges.get(column) or [None] * len(self.rows)

    def by_directory(self, expr: Expr) -> list[bool]:
        return [True] * len(self.rows)


def _possible(parts: _Parts, expr: Expr) -> list[bool]:
    """Whether a row of each part can pass."""
    match expr:
        case Call(function="and"):
            return _each(all, parts, [_possible(parts, a) for a in expr.args])
        case Call(function="or"):
            return _each(any, parts, [_possible(parts, a) for a in expr.args])
        case Call(function="isnotnull", args=(Column() as column,)):
            return list(map(_may_have_value, parts.ranges(column.name), parts.rows))
        case Call(function="isnull", args=(Column() as column,)):
            return list(map(_may_have_null, parts.ranges(column.name)))
        case Call(function="neq"):
            return parts.by_directory(expr)
        case Call(function=name, args=(Column() as column, Literal() as value)) if expr.entry.is_comparison:
            return _compare(parts, name, column, value)
        case Call(args=(Literal() as value, Column() as column)) if expr.entry.is_comparison:
            return _compare(parts, expr.entry.operator.flipped, column, value)
        case InList(child=Column() as column):
            return _each(any, parts, [_compare(parts, "eq", column, v) for v in expr.values])
    return parts.by_directory(expr)


def _each(
    quantifier: Callable[[Iterable[bool]], bool], parts: _Parts, verdicts: Sequence[Sequence[bool]]
) -> list[bool]:
    """``all`` or ``any`` of the verdicts on each part."""
    return list(map(quantifier, zip(*verdicts, strict=True))) if verdicts else _none(parts)


def _none(parts: _Parts) -> list[bool]:
    return [False] * len(parts.rows)


def _may_have_null(statistics: ColumnRange | None) -> bool:
    return statistics is None or statistics.nulls is None or statistics.nulls > 0


def _may_have_value(statistics: ColumnRange | None, rows: int) -> bool:
    return statistics is None or statistics.nulls is None or statistics.nulls < rows


def _compare(parts: _Parts, op: str, column: Column, value: Literal) -> list[bool]:
    if op == "eq_null_safe":
        if value.value is None:
            return list(map(_may_have_null, parts.ranges(column.name)))
        op = "eq"
    if value.value is None:
        return _none(parts)
    literal = value.value.encode() if isinstance(value.value, str) else value.value
    ranges = parts.ranges(column.name)
    if column.dtype != value.dtype or not _is_told_by_ends(op, literal, column.dtype):
        return [True] * len(ranges)
    return [_overlaps(each, op, literal, column.dtype) for each in ranges]


def _is_told_by_ends(op: str, literal: Any, dtype: pa.DataType) -> bool:
    """Whether the smallest and the largest value say if some value compares with the literal: NaN is above both."""
    if isinstance(literal, bool):
        return False
    return not t.is_fractional(dtype) or (literal == literal and (op == "lt" or op == "lteq"))


def _overlaps(statistics: ColumnRange | None, op: str, literal: Any, dtype: pa.DataType) -> bool:
    if statistics is None or statistics.low is None:
        return True
    low, high = comparable(statistics.low, dtype), comparable(statistics.high, dtype)
    if low is None or high is None or type(low) is not type(literal):
        return True
    match op:
        case "eq":
            return bool(low <= literal <= high)
        case "lt":
            return bool(low < literal)
        case "lteq":
            return bool(low <= literal)
        case "gt":
            return bool(high > literal)
    return bool(high >= literal)


def comparable(value: Any, dtype: pa.DataType) -> Any:
    """A statistic in the form literals of the type have; None when it has no such form."""
    if isinstance(value, dt.datetime):
        if not pa.types.is_timestamp(dtype):
            return None
        moment = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
        return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // _MICROSECOND
    if isinstance(value, dt.time):
        since_midnight = dt.datetime.combine(_EPOCH, value) - dt.datetime.combine(_EPOCH, dt.time())
        return since_midnight // _MICROSECOND * MICRO_NANOS if dtype == t.TIME else None
    if isinstance(value, dt.date):
        return (value - _EPOCH).days
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and t.is_decimal(dtype):
        return Decimal(value)
    return value if isinstance(value, int | float | Decimal | bytes) else None


def has_integer_order(dtype: pa.DataType) -> bool:
    """Whether literals of the type are integers, ordered as its values are."""
    return bool(t.is_integral(dtype) or dtype == t.DATE or t.has_long_counts(dtype))
