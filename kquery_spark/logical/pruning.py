"""Prunes splits and pages by statistics: finds those that can contain rows that pass the filters of a scan.

A split (for example a Parquet row group) with ``min(a) = 10`` and ``max(a) = 20`` cannot contain a row with ``a = 5``, but
may contain one with ``a = 15``. The same reasoning applies to the pages of one split. All functions here err on the safe
side: a part without statistics, or a condition of an unknown form, is never pruned.
"""

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
from kquery_spark.functions.registry import function
from kquery_spark.functions.sql_form import Logic
from kquery_spark.logical.bucket_pruning import possible_buckets
from kquery_spark.logical.partition_conditions import evaluate_by_partition, partition_values_read
from kquery_spark.sources.base import ColumnRange, PageStatistics, Source, Split
from kquery_spark.types import names as t
from kquery_spark.types.units import MICRO_NANOS
from kquery_spark.types.vector import Int64s

_MAX_SELECTED_ROW_SHARE = 0.7  # if more of a split's rows can pass, selecting pages costs more than it saves
# Up to this number of splits, their sizes account for page statistics: for small inputs this decides where a query runs.
_MAX_SPLITS_SIZED_BY_PAGES = 4
_EPOCH = dt.date(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


def prune(source: Source, filters: Sequence[Expr]) -> list[Split]:
    """Return the source's splits without those in which no row can pass all filters."""
    if not filters:
        return source.splits()
    if not source.columnar:
        return _remaining_splits(source, filters)
    # The estimator, the planner and the placement all need the same splits, so the source caches the result.
    return list(source.once(("prune", *filters), lambda: _remaining_splits(source, filters)))


def _remaining_splits(source: Source, filters: Sequence[Expr]) -> list[Split]:
    remaining = _splits_in_possible_buckets(source, filters)
    for condition in filters:
        remaining = list(compress(remaining, _can_pass(_Splits(source, remaining), condition)))
    return remaining


def _splits_in_possible_buckets(source: Source, filters: Sequence[Expr]) -> list[Split]:
    splits, bucketing = source.splits(), source.bucketing
    if bucketing is None or (possible := possible_buckets(bucketing.spec, filters)) is None:
        return splits
    return [split for split in splits if possible[bucketing.files[split.file]]]


def possible_rows(
    source: Source, split: Split, filters: Sequence[Expr], late: Sequence[Expr] = ()
) -> Int64s | None:
    """Return the positions of the rows that can pass, by page statistics. None: read all rows of the split.

    The split must have one piece. It returns None also if only a few rows can be skipped, because a selection has a cost.
    late: filters that were not known when the splits were pruned, so the whole split is tested with them first.

    Example: if only the second of three pages of 100 rows can pass, the result is the positions 100 to 199.
    """
    if not all(_can_pass(_Splits(source, [split]), condition)[0] for condition in late):
        return np.zeros(0, np.int64)
    filters = [*filters, *late]
    page_statistics = source.page_statistics(split, sorted(columns_of(*filters)))
    if page_statistics is None:
        return None
    page_rows = np.diff(page_statistics.starts)
    pages = _Pages(page_statistics, page_rows.tolist())
    possible = np.ones(len(page_rows), np.bool_)
    for condition in filters:
        possible &= np.array(_can_pass(pages, condition), np.bool_)
    if page_rows[possible].sum() > _MAX_SELECTED_ROW_SHARE * page_statistics.starts[-1]:
        return None
    return np.flatnonzero(np.repeat(possible, page_rows))


def sized_splits(source: Source, filters: Sequence[Expr], columns: Sequence[str]) -> list[Split]:
    """Return the splits that remain after pruning, with the bytes that reading these columns and the filters' takes."""
    if not source.columnar:
        return prune(source, filters)
    key = ("sized", tuple(filters), *columns)
    return list(source.once(key, lambda: _compute_sized_splits(source, filters, columns)))


def _compute_sized_splits(source: Source, filters: Sequence[Expr], columns: Sequence[str]) -> list[Split]:
    all_bytes = sum(s.nbytes for s in source.splits())
    read_bytes = source.column_bytes(list(dict.fromkeys([*columns, *sorted(columns_of(*filters))])))
    column_share = min(1.0, read_bytes / all_bytes) if all_bytes else 1.0
    splits = prune(source, filters)
    shares = [column_share] * len(splits)
    if len(splits) <= _MAX_SPLITS_SIZED_BY_PAGES:
        shares = [column_share * _passing_row_share(source, s, filters) for s in splits]
    return [replace(s, nbytes=int(s.nbytes * share)) for s, share in zip(splits, shares, strict=True)]


def _passing_row_share(source: Source, split: Split, filters: Sequence[Expr]) -> float:
    """Return the share of a split's rows that can pass by page statistics."""
    if not filters or not source.addressable or not split.rows or len(split.pieces) != 1:
        return 1.0
    rows = possible_rows(source, split, filters)
    return 1.0 if rows is None else len(rows) / split.rows


def needed_filters(source: Source, splits: Sequence[Split], filters: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the filters without those that hold for every row of the splits: IS NOT NULL on a column without NULLs."""
    return tuple(f for f in filters if not _holds_for_all_rows(source, splits, f))


def _holds_for_all_rows(source: Source, splits: Sequence[Split], expr: Expr) -> bool:
    match expr:
        case Call(logic=Logic.IS_NOT_NULL, args=(Column() as column,)):
            ranges = [source.ranges(s, column.name) for s in splits]
            return all(r is not None and r.nulls == 0 for r in ranges)
        case Call(logic=Logic.AND):
            return all(_holds_for_all_rows(source, splits, a) for a in expr.args)
    return False


class _Parts(Protocol):
    """Parts of a source that have statistics: its splits, or the pages of one split."""

    @property
    def rows(self) -> list[int]:
        """The number of rows of each part."""

    def ranges(self, column: str) -> Sequence[ColumnRange | None]:
        """Return the statistics of a column in each part."""

    def can_pass_by_partition(self, expr: Expr) -> list[bool]:
        """Return, for each part, whether its partition values let rows pass; True if ``expr`` reads other columns."""


@dataclass(frozen=True)
class _Splits:
    """Splits of a source, with the statistics of whole splits."""

    source: Source
    splits: Sequence[Split]

    @property
    def rows(self) -> list[int]:
        return [s.rows for s in self.splits]

    def ranges(self, column: str) -> Sequence[ColumnRange | None]:
        return [self.source.ranges(s, column) for s in self.splits]

    def can_pass_by_partition(self, expr: Expr) -> list[bool]:
        values = partition_values_read(self.source, expr)
        if values is not None:
            # A condition that raises is left for the rows, which raise the error again when they are read.
            with suppress(ExecutionError, Unsupported):
                verdicts = evaluate_by_partition(expr, values)
                return [verdicts[values[s.file]] is True for s in self.splits]
        return [True] * len(self.splits)


@dataclass(frozen=True)
class _Pages:
    """The pages of one split. Its partition values were tested with the whole split, so they are not tested again."""

    statistics: PageStatistics
    rows: list[int]

    def ranges(self, column: str) -> Sequence[ColumnRange | None]:
        return self.statistics.ranges.get(column) or [None] * len(self.rows)

    def can_pass_by_partition(self, expr: Expr) -> list[bool]:
        return [True] * len(self.rows)


def _can_pass(parts: _Parts, expr: Expr) -> list[bool]:
    """Return, for each part, whether it can contain a row for which ``expr`` is TRUE."""
    match expr:
        case Call(logic=Logic.AND):
            return _combine(all, parts, [_can_pass(parts, a) for a in expr.args])
        case Call(logic=Logic.OR):
            return _combine(any, parts, [_can_pass(parts, a) for a in expr.args])
        case Call(logic=Logic.IS_NOT_NULL, args=(Column() as column,)):
            return list(map(_may_have_value, parts.ranges(column.name), parts.rows))
        case Call(logic=Logic.IS_NULL, args=(Column() as column,)):
            return list(map(_may_have_null, parts.ranges(column.name)))
        case Call(logic=Logic.NOT_EQUAL):
            return parts.can_pass_by_partition(expr)
        case Call(logic=Logic() as operator, args=(Column() as column, Literal() as value)) if (
            expr.entry.is_comparison
        ):
            return _compare(parts, operator, column, value)
        case Call(args=(Literal() as value, Column() as column)) if expr.entry.is_comparison:
            return _compare(parts, function(expr.entry.operator.flipped).operator.logic, column, value)
        case InList(child=Column() as column):
            return _combine(any, parts, [_compare(parts, Logic.EQUAL, column, v) for v in expr.values])
    return parts.can_pass_by_partition(expr)


def _combine(
    quantifier: Callable[[Iterable[bool]], bool], parts: _Parts, verdicts: Sequence[Sequence[bool]]
) -> list[bool]:
    """Combine several verdicts on each part by ``all`` or ``any``."""
    return list(map(quantifier, zip(*verdicts, strict=True))) if verdicts else _no_part(parts)


def _no_part(parts: _Parts) -> list[bool]:
    return [False] * len(parts.rows)


def _may_have_null(statistics: ColumnRange | None) -> bool:
    return statistics is None or statistics.nulls is None or statistics.nulls > 0


def _may_have_value(statistics: ColumnRange | None, rows: int) -> bool:
    return statistics is None or statistics.nulls is None or statistics.nulls < rows


def _compare(parts: _Parts, op: Logic | None, column: Column, value: Literal) -> list[bool]:
    if op is Logic.EQUAL_NULL_SAFE:
        if value.value is None:
            return list(map(_may_have_null, parts.ranges(column.name)))
        op = Logic.EQUAL
    if value.value is None:
        return _no_part(parts)  # a comparison with NULL is NULL
    literal = value.value.encode() if isinstance(value.value, str) else value.value
    ranges = parts.ranges(column.name)
    if column.dtype != value.dtype or not _can_prune_by_min_max(op, literal, column.dtype):
        return [True] * len(ranges)
    return [_overlaps(each, op, literal, column.dtype) for each in ranges]


def _can_prune_by_min_max(op: Logic | None, literal: Any, dtype: pa.DataType) -> bool:
    """True if minimum and maximum decide whether a part can have a value for which the comparison is true.

    Writers leave NaN out of the minimum and the maximum, but Spark orders NaN above all other values. Therefore floats are
    pruned only by ``<`` and ``<=`` with a literal that is not NaN itself: a NaN in the part would not pass these.
    """
    if isinstance(literal, bool):
        return False
    return not t.is_fractional(dtype) or (literal == literal and op in (Logic.LESS, Logic.LESS_OR_EQUAL))


def _overlaps(statistics: ColumnRange | None, op: Logic | None, literal: Any, dtype: pa.DataType) -> bool:
    """True if some value between minimum and maximum satisfies ``value op literal``."""
    if statistics is None or statistics.low is None:
        return True
    low, high = comparable(statistics.low, dtype), comparable(statistics.high, dtype)
    if low is None or high is None or type(low) is not type(literal):
        return True
    match op:
        case Logic.EQUAL:
            return bool(low <= literal <= high)
        case Logic.LESS:
            return bool(low < literal)
        case Logic.LESS_OR_EQUAL:
            return bool(low <= literal)
        case Logic.GREATER:
            return bool(high > literal)
    return bool(high >= literal)


def comparable(value: Any, dtype: pa.DataType) -> Any:
    """Convert a minimum or maximum to the Python value of a literal of this type; None if it has no such form.

    NaN is not a bound: parquet-mr before 1.10 (Spark 2.0 to 2.3) writes NaN as minimum and maximum if the first value of a
    row group is NaN (PARQUET-1246), whatever the other values are.
    """
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
    if isinstance(value, bool) or value != value:
        return None
    if isinstance(value, int) and t.is_decimal(dtype):
        return Decimal(value)
    return value if isinstance(value, int | float | Decimal | bytes) else None


def has_integer_order(dtype: pa.DataType) -> bool:
    """True if literals of the type are integers whose order is the order of the type's values."""
    return bool(t.is_integral(dtype) or dtype == t.DATE or t.has_long_counts(dtype))
