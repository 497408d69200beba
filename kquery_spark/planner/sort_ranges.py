"""Range partitioning of a global sort: all rows of a task come before those of the next task.

The boundaries between the ranges of the first sort key are chosen before the query runs. If the row groups are already in
the order of the key, the footers are enough; otherwise a few row groups, or a few short ranges of text files, are sampled.
For 4 tasks and the sorted sample 3 5 8 9 12 15 20 40, the boundaries are 8, 12 and 20: each range has about two of the eight
values. Boundaries only determine how evenly the tasks share the work; the result is correct for any of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Context, Decimal
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, SourceError
from kquery_spark.expr import Column, Expr, UserCall, columns_of, walk
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.kernels.utf8 import invalid_rows, is_valid
from kquery_spark.logical import Scan, Sort, origin_expression
from kquery_spark.logical.pruning import comparable, prune
from kquery_spark.physical.expr import Program
from kquery_spark.physical.key_ranges import has_ranges, range_values
from kquery_spark.physical.operators import Partitioning
from kquery_spark.sources.base import ColumnRange, Source, Split
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector, decode

_EXACT = Context(prec=80)  # the default precision of 28 digits would round longer decimals
_SAMPLED_SPLITS = 4
_SAMPLED_PARTS = 8  # the most parts that are read from all sampled splits together
_SAMPLE_READ_ROWS = 1 << 20  # about this number of rows is read for a sample, but at least one split
_SAMPLE_ROWS_PER_SPLIT = 16_384  # the values that are taken from each split read
_SAMPLE_VALUES = 4096  # the values that are interpolated from the footers of all row groups
# Row groups count as sorted if at most this share of them overlaps with the next one.
_MAX_OVERLAP_SHARE = 0.25

_Values = Any  # Int64s or pa.Array, as ``range_values`` returns them; pyarrow ships no types


def sort_ranges(plan: Sort, count: int) -> Partitioning | None:
    """Return up to ``count`` ranges of the first key with about equal numbers of rows; None if its values are unknown."""
    key = plan.keys[0]
    scanned = origin_expression(plan.child, key.expr) if has_ranges(key.expr.dtype) else None
    if scanned is None or not _can_be_sampled(scanned[1]):
        return None
    bounds = _bounds(_values(*scanned), count)
    if not bounds:
        return None
    return Partitioning((key.expr,), len(bounds) + 1, bounds, not key.ascending, not key.nulls_first)


def _can_be_sampled(expr: Expr) -> bool:
    """True if the expression is deterministic and calls no user code, which must not run during planning."""
    return is_deterministic(expr) and not any(isinstance(e, UserCall) for e in walk(expr))


def _bounds(values: list[Any], count: int) -> tuple[Any, ...]:
    """Return the values that divide sorted values into about ``count`` equal parts.

    Equal values cannot be divided: if a part would start with the value of the previous boundary, it starts with the next
    larger value instead. So there may be fewer parts.
    """
    bounds: list[Any] = []
    for i in range(1, count if values else 0):
        position = max(len(values) * i // count, bisect_right(values, bounds[-1] if bounds else values[0]))
        if position < len(values):
            bounds.append(values[position])
    return tuple(bounds)


def _values(scan: Scan, expr: Expr) -> list[Any]:
    """Return sorted values that represent the distribution of an expression over the scan's columns."""
    source = scan.source

    def find() -> list[Any]:
        # Splits that the filters prune do not reach the sort, so they must not influence the boundaries.
        splits = prune(source, scan.filters)
        try:
            from_footers = _interpolate(source, splits, expr.name) if isinstance(expr, Column) else None
            return _sort_values(_sample(source, splits, expr) if from_footers is None else from_footers)
        except (SourceError, ExecutionError):
            # Reading the rows for the query raises the error again, if it needs them.
            return []

    return source.once(("sort values", expr, *scan.filters), find)


def _interpolate(source: Source, splits: Sequence[Split], column: str) -> _Values | None:
    """Return values between minimum and maximum of each split, in proportion to its rows.

    None if a split has no statistics, or if the splits are not in the order of the column.
    """
    dtype = source.schema.field(column).type
    ranges = [_min_max(source.ranges(split, column), dtype) for split in splits]
    known = [pair for pair in ranges if pair is not None]
    if len(splits) < 2 or len(known) < len(splits) or not _are_in_order(known):
        return None
    rows = max(sum(s.rows for s in splits), 1)
    values: list[Any] = []
    for split, (low, high) in zip(splits, known, strict=True):
        values += _spaced_values(low, high, max(1, _SAMPLE_VALUES * split.rows // rows))
    return np.array(values, np.int64) if isinstance(values[0], int) else pa.array(values, dtype)


def _are_in_order(ends: list[tuple[Any, Any]]) -> bool:
    """True if the splits are in the order of the column: only a few of them overlap with the next one."""
    overlaps = sum(bool(a[1] > b[0]) for a, b in pairwise(sorted(ends)))
    return overlaps <= _MAX_OVERLAP_SHARE * len(ends)


def _spaced_values(low: Any, high: Any, count: int) -> list[Any]:
    """Return ``count`` evenly spaced values from ``low`` on. Strings are not interpolated, so ``low`` is repeated."""
    return [low + (high - low) * i // count for i in range(count)] if isinstance(low, int) else [low] * count


def _min_max(statistics: ColumnRange | None, dtype: pa.DataType) -> tuple[Any, Any] | None:
    if statistics is None:
        return None
    low, high = _range_value(statistics.low, dtype), _range_value(statistics.high, dtype)
    return None if low is None or high is None else (low, high)


def _range_value(value: Any, dtype: pa.DataType) -> Any:
    """Convert a statistic to the form in which ``range_values`` returns values; None if it has no such form."""
    known = comparable(value, dtype)
    if isinstance(known, Decimal):
        known = int(known.scaleb(dtype.scale, _EXACT))
    if isinstance(known, bytes) and dtype == t.STRING:
        # Writers truncate long statistics, possibly inside of a character.
        return known.decode(errors="ignore")
    fits = isinstance(known, bytes) or (isinstance(known, int) and -(2**63) <= known < 2**63)
    return known if fits else None


def _sample(source: Source, splits: Sequence[Split], expr: Expr) -> _Values:
    """Return values of the expression from a few splits that are spread over the source."""
    columns = sorted(columns_of(expr))
    program = Program([expr], pa.schema([source.schema.field(c) for c in columns]))
    samples: list[_Values] = []
    for part in _sampled_parts(source, splits):
        batches = source.read(part, columns)
        for batch in batches if source.columnar else islice(batches, 1):
            (vector,) = program.run(batch)
            samples.append(range_values(_thin_out(vector.filled(batch.num_rows))))
    if all(isinstance(v, np.ndarray) for v in samples):
        return np.concatenate([np.empty(0, np.int64), *samples])
    return pa.concat_arrays([decode(v) if pa.types.is_dictionary(v.type) else v for v in samples])


def _sampled_parts(source: Source, splits: Sequence[Split]) -> list[Split]:
    """Return parts of a few evenly spread splits, but not more splits than are necessary for the rows of a sample."""
    num_splits = min(len(splits), _SAMPLED_SPLITS)
    parts_per_split = _SAMPLED_PARTS // max(num_splits, 1)
    by_split = [source.sample_parts(split, parts_per_split) for split in _spread(splits, num_splits)]
    rows_per_split = max((sum(part.rows for part in parts) for parts in by_split), default=1)
    # If the parts of a split have many rows, fewer splits suffice. These are spread evenly again.
    num_splits = min(num_splits, max(1, _SAMPLE_READ_ROWS // max(rows_per_split, 1)))
    sampled = _spread(splits, num_splits)
    return [part for split in sampled for part in source.sample_parts(split, parts_per_split)]


def _spread(splits: Sequence[Split], most: int) -> list[Split]:
    """Return up to ``most`` evenly spread splits."""
    count = min(len(splits), most)
    return [splits[len(splits) * i // count] for i in range(count)]


def _thin_out(vector: Vector) -> Vector:
    """Return evenly spread values of the vector, without NULLs."""
    data = vector.data.drop_null()
    step = max(1, len(data) // _SAMPLE_ROWS_PER_SPLIT)
    return Vector(vector.dtype, data.take(pa.array(np.arange(0, len(data), step))))


def _sort_values(values: _Values) -> list[Any]:
    if isinstance(values, np.ndarray):
        return list(np.sort(values).tolist())
    if not is_valid(values):
        values = values.filter(pa.array(~invalid_rows(values)))  # Python's strings are valid UTF-8
    return list(values.take(pc.sort_indices(values)).to_pylist())
