"""Computes window functions over arranged rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.expr import Frame, SortKey, WindowCall
from kquery_spark.functions.aggregate.windows import window_function
from kquery_spark.physical.windows import aggregates
from kquery_spark.physical.windows.frames import frame_rows
from kquery_spark.physical.windows.picking import constant_number, value_at, window_function_of_call
from kquery_spark.physical.windows.results import ComputedResult, WindowResult, gathered
from kquery_spark.physical.windows.segments import Segments
from kquery_spark.physical.windows.sliding import prefix_counts
from kquery_spark.types.batch import concat_arrays
from kquery_spark.types.vector import Int64s, Vector

Ranking = Callable[..., np.ndarray]
"""Takes the segments and the constant argument, if the function has one."""

_RANKING: dict[str, Ranking] = {}


class WindowEvaluator:
    """Computes calls over one arrangement of rows. Frames that several calls share are computed once."""

    def __init__(self, segments: Segments, order: Sequence[tuple[SortKey, Vector]]) -> None:
        self._segments = segments
        self._order = list(order)
        self._frames: dict[Frame, tuple[Int64s, Int64s]] = {}

    def compute(self, call: WindowCall, args: Sequence[Vector]) -> WindowResult:
        """Return the result, with one value per row. args: the argument columns of the arranged rows."""
        ranking = _RANKING.get(call.function)
        if ranking is not None:
            constants = [constant_number(call, index) for index in range(len(call.args))]
            return ComputedResult(pa.array(ranking(self._segments, *constants)))
        if call.entry is not None and call.entry.is_offset:
            return self._lag_or_lead(call, args, call.entry.offset_sign)
        name, ignore_nulls = window_function_of_call(call)
        entry = window_function(name)
        if entry is not None and entry.row is not None:
            return value_at(call, entry.row, ignore_nulls, args, *self._frame(call.frame))
        if ignore_nulls:
            raise Unsupported(f"IGNORE NULLS with {call.function} is not supported")
        if call.frame.whole:
            return aggregates.whole_partition(call, args, self._segments)
        return aggregates.framed(call, args, *self._frame(call.frame))

    def _frame(self, frame: Frame) -> tuple[Int64s, Int64s]:
        row_ranges = self._frames.get(frame)
        if row_ranges is None:
            row_ranges = self._frames[frame] = frame_rows(frame, self._segments, self._order)
        return row_ranges

    def _lag_or_lead(self, call: WindowCall, args: Sequence[Vector], sign: int) -> WindowResult:
        """Compute lag or lead: the value of the row at a fixed distance, or the default outside of the partition."""
        s, n = self._segments, self._segments.num_rows
        distance = constant_number(call, 1) if len(call.args) > 1 else 1
        # Larger distances also end outside of the partition. Adding them to row numbers could overflow.
        distance = max(-n - 1, min(n + 1, sign * distance))
        data = args[0].physical(n)
        skips_nulls = call.ignore_nulls and distance and data.null_count
        target = _valid_rows_at(distance, data) if skips_nulls else s.rows + distance
        outside = (target < s.start) | (target >= s.end)
        if len(args) < 3 or (args[2].is_scalar and not args[2].data.is_valid):
            return gathered(Vector(call.dtype, data), np.where(outside, 0, target), outside)
        # The values are followed by the defaults, so the default of row i is at position n + i, and a constant one at n.
        defaults, positions = (args[2].physical(1), n) if args[2].is_scalar else (args[2].data, n + s.rows)
        both = Vector(call.dtype, concat_arrays(call.dtype, [data, defaults]))
        return gathered(both, np.where(outside, positions, target))


def _valid_rows_at(distance: int, data: pa.Array) -> Int64s:
    """Return, for each row, the row that is ``distance`` values after it if NULLs are not counted; -1 if there is none.

    A negative distance counts the values before the row.
    """
    valid = pc.is_valid(data).to_numpy(zero_copy_only=False)
    valid_rows, before = np.flatnonzero(valid), prefix_counts(valid)
    if not len(valid_rows):
        return np.full(len(data), -1, np.int64)
    # ``before`` counts the values before each row. The values after a row begin at the count that includes the row itself.
    positions = before[:-1] + distance if distance < 0 else before[1:] + distance - 1
    inside = (positions >= 0) & (positions < len(valid_rows))
    return np.where(inside, valid_rows[np.clip(positions, 0, len(valid_rows) - 1)], -1)


def _register_ranking(name: str) -> Callable[[Ranking], Ranking]:
    def add(ranking: Ranking) -> Ranking:
        _RANKING[name] = ranking
        return ranking

    return add


@_register_ranking("row_number")
def _row_number(s: Segments) -> np.ndarray:
    return (s.rows - s.start + 1).astype(np.int32)


@_register_ranking("rank")
def _rank(s: Segments) -> np.ndarray:
    return (s.peer_start - s.start + 1).astype(np.int32)


@_register_ranking("dense_rank")
def _dense_rank(s: Segments) -> np.ndarray:
    steps = np.cumsum(s.peer_start == s.rows)
    return (steps - steps[s.start] + 1).astype(np.int32) if len(steps) else steps.astype(np.int32)


@_register_ranking("percent_rank")
def _percent_rank(s: Segments) -> np.ndarray:
    others = s.end - s.start - 1
    return np.asarray((s.peer_start - s.start) / np.maximum(others, 1), np.float64)


@_register_ranking("cume_dist")
def _cume_dist(s: Segments) -> np.ndarray:
    return np.asarray((s.peer_end - s.start) / (s.end - s.start), np.float64)


@_register_ranking("ntile")
def _ntile(s: Segments, buckets: int) -> np.ndarray:
    if buckets <= 0:
        raise ExecutionError(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE",
            f"ntile needs a positive number of buckets, not {buckets}.",
        )
    size, row = s.end - s.start, s.rows - s.start
    # The first ``more`` buckets have one row more than the others: 7 rows in 3 buckets have the sizes 3, 2, 2.
    each, more = size // buckets, size % buckets
    long = more * (each + 1)
    ranks = np.where(row < long, row // (each + 1), more + (row - long) // np.maximum(each, 1)) + 1
    return ranks.astype(np.int32)


def rank_of(function: str, segments: Segments) -> np.ndarray:
    """Return the row_number, rank or dense_rank of each arranged row."""
    return _RANKING[function](segments)
