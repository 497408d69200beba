"""Ranges of the first sort key, by which tasks share a sort: all rows of a task come before those of the next one.

Where the bounds are is known from the files before the query runs: from the footers where row groups follow each other
in the order of the key, else from a sample of it. They only steer how evenly the work is shared, never the answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, SourceError
from kquery_spark.expr import Column, Expr, UserCall, columns_of, walk
from kquery_spark.expr.properties import is_deterministic
from kquery_spark.logical import Scan, Sort, origin_expression
from kquery_spark.logical.pruning import comparable, prune
from kquery_spark.physical.expr import Program
from kquery_spark.physical.key_ranges import has_ranges, range_values
from kquery_spark.physical.operators import Partitioning
from kquery_spark.sources.base import ColumnRange, Source, Split
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector, decode

_SAMPLED_SPLITS = 4
_SAMPLE_READ_ROWS = 1 << 20  # about as many are read for a sample, and a split at least
_SAMPLE_ROWS_PER_SPLIT = 16_384  # of each split
_SAMPLE_VALUES = 4096  # values that stand for those of all row groups
_MAX_OVERLAP_SHARE = 0.25  # of row groups with the next one, where they still follow each other

_Values = Any  # Int64s or pa.Array, as ``range_values`` gives them; pyarrow ships no types


def sort_ranges(plan: Sort, count: int) -> Partitioning | None:
    """Up to ``count`` ranges of the first key with about as many rows each; None where nothing is known of its values."""
    key = plan.keys[0]
    scanned = origin_expression(plan.child, key.expr) if has_ranges(key.expr.dtype) else None
    if scanned is None or not _may_be_sampled(scanned[1]):
        return None
    bounds = _bounds(_values(*scanned), count)
    if not bounds:
        return None
    return Partitioning((key.expr,), len(bounds) + 1, bounds, not key.ascending, not key.nulls_first)


def _may_be_sampled(expr: Expr) -> bool:
    """Whether some of its values now tell of the others later, and no code of the user's runs for it while planning."""
    return is_deterministic(expr) and not any(isinstance(e, UserCall) for e in walk(expr))


def _bounds(values: list[Any], count: int) -> tuple[Any, ...]:
    """Of sorted values, those that cut them into about equal parts; the next one where a value is in several parts."""
    bounds: list[Any] = []
    for i in range(1, count if values else 0):
        position = max(len(values) * i // count, bisect_right(values, bounds[-1] if bounds else values[0]))
        if position < len(values):
            bounds.append(values[position])
    return tuple(bounds)


def _values(scan: Scan, expr: Expr) -> list[Any]:
    """Sorted values that stand for those of an expression over a scan's columns."""
    source = scan.source

    def find() -> list[Any]:
        splits = prune(source, scan.filters)
        try:
            between = _between_ends(source, splits, expr.name) if isinstance(expr, Column) else None
            return _sorted(_sample(source, splits, expr) if between is None else between)
        except (SourceError, ExecutionError):  # raised again where the rows are read, if this is one of them
            return []

    return source.once(("sort values", expr, *scan.filters), find)


def _between_ends(source: Source, splits: Sequence[Split], column: str) -> _Values | None:
    """Values between the ends of each split, by its rows; None where splits do not follow each other by the column."""
    dtype = source.schema.field(column).type
    ends = [_ends(source.ranges(split, column), dtype) for split in splits]
    known = [pair for pair in ends if pair is not None]
    if len(splits) < 2 or len(known) < len(splits) or not _follow_each_other(known):
        return None
    rows = max(sum(s.rows for s in splits), 1)
    values: list[Any] = []
    for split, (low, high) in zip(splits, known, strict=True):
        values += _steps(low, high, max(1, _SAMPLE_VALUES * split.rows // rows))
    return np.array(values, np.int64) if isinstance(values[0], int) else pa.array(values, dtype)


def _follow_each_other(ends: list[tuple[Any, Any]]) -> bool:
    """Whether few of the splits overlap with the next one."""
    overlaps = sum(bool(a[1] > b[0]) for a, b in pairwise(sorted(ends)))
    return overlaps <= _MAX_OVERLAP_SHARE * len(ends)


def _steps(low: Any, high: Any, count: int) -> list[Any]:
    """So many values from the low end on; of texts the low end again and again."""
    return [low + (high - low) * i // count for i in range(count)] if isinstance(low, int) else [low] * count


def _ends(statistics: ColumnRange | None, dtype: pa.DataType) -> tuple[Any, Any] | None:
    if statistics is None:
        return None
    low, high = _end(statistics.low, dtype), _end(statistics.high, dtype)
    return None if low is None or high is None else (low, high)


def _end(value: Any, dtype: pa.DataType) -> Any:
    """A statistic as ``range_values`` has the values; None for those that it has no such form of."""
    known = comparable(value, dtype)
    if isinstance(known, Decimal):
        known = int(known.scaleb(dtype.scale))
    if isinstance(known, bytes) and dtype == t.STRING:
        return known.decode(errors="ignore")  # it may be cut off inside of a character
    fits = isinstance(known, bytes) or (isinstance(known, int) and -(2**63) <= known < 2**63)
    return known if fits else None


def _sample(source: Source, splits: Sequence[Split], expr: Expr) -> _Values:
    """Values of the expression from a few splits, from all over the source."""
    columns = sorted(columns_of(expr))
    program = Program([expr], pa.schema([source.schema.field(c) for c in columns]))
    samples: list[_Values] = []
    for split in _sampled_splits(splits):
        piece = replace(split, pieces=split.pieces[:1]) if source.divisible else split
        batches = source.read(piece, columns)
        for batch in batches if source.columnar else islice(batches, 1):
            (vector,) = program.run(batch)
            samples.append(range_values(_some(Vector(vector.dtype, vector.physical(batch.num_rows)))))
    if all(isinstance(v, np.ndarray) for v in samples):
        return np.concatenate([np.empty(0, np.int64), *samples])
    return pa.concat_arrays([decode(v) if pa.types.is_dictionary(v.type) else v for v in samples])


def _sampled_splits(splits: Sequence[Split]) -> list[Split]:
    """A few, evenly spread, but no more than have about as many rows as a sample needs."""
    most_rows = max((s.rows for s in splits), default=1)
    count = min(len(splits), _SAMPLED_SPLITS, max(1, _SAMPLE_READ_ROWS // max(most_rows, 1)))
    return [splits[len(splits) * i // count] for i in range(count)]


def _some(vector: Vector) -> Vector:
    """Some of its values, from all over it, without NULLs."""
    data = vector.data.drop_null()
    step = max(1, len(data) // _SAMPLE_ROWS_PER_SPLIT)
    return Vector(vector.dtype, data.take(pa.array(np.arange(0, len(data), step))))


def _sorted(values: _Values) -> list[Any]:
    if isinstance(values, np.ndarray):
        return list(np.sort(values).tolist())
    return list(values.take(pc.sort_indices(values)).to_pylist())
