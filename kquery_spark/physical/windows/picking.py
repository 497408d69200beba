"""Computes calls whose result is the value of one row of the frame: FIRST_VALUE, NTH_VALUE, MIN, MAX, max_by, ...

Only the number of that row is computed for each frame. The values, which may be long, are copied when the result is built.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.expr import Literal, WindowCall
from kquery_spark.functions.aggregate.windows import FrameRow, window_function
from kquery_spark.functions.aggregate_registry import aggregate_function
from kquery_spark.physical.aggregates import accumulator, reduce
from kquery_spark.physical.aggregates.picking import ExtremeBy
from kquery_spark.physical.windows.results import WindowResult, gathered
from kquery_spark.physical.windows.sliding import fold_ranges, prefix_counts
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, true_flags, validity

_INT64 = np.iinfo(np.int64)


def window_function_of_call(call: WindowCall) -> tuple[str, bool]:
    """Return the name of a call's window function, and whether it ignores NULLs.

    The aggregates first and last are the window functions first_value and last_value.
    """
    if call.entry is None:
        aggregate = aggregate_function(call.function)
        if aggregate.over_window:
            return aggregate.over_window, aggregate.ignores_nulls
    return call.function, call.ignore_nulls


def picked_values(call: WindowCall, args: Sequence[Vector], low: Int64s, high: Int64s) -> WindowResult | None:
    """Return, for each row, the value that the call picks among the rows ``low:high``; None for calls that do not pick.

    The argument of MIN and MAX must be a string or nested; values of a fixed size are folded in ``aggregates``.
    """
    name, ignore_nulls = window_function_of_call(call)
    entry = window_function(name)
    if entry is not None:
        return None if entry.row is None else value_at(call, entry.row, ignore_nulls, args, low, high)
    aggregate = aggregate_function(name)
    accumulate = accumulator(aggregate.accumulator)
    if isinstance(accumulate, ExtremeBy):
        return _extreme_by(args[0], args[1], low, high, accumulate.largest, is_last=True)
    if aggregate.extreme:
        return _extreme(args[0], low, high, aggregate.extreme == "greatest")
    return None


def value_at(
    call: WindowCall, row: FrameRow, ignore_nulls: bool, args: Sequence[Vector], low: Int64s, high: Int64s
) -> WindowResult:
    """Compute first_value, last_value or nth_value: the value of one row of the frame; NULL if it does not exist.

    A second argument of first_value and last_value is a FILTER. If only some rows count (FILTER, IGNORE NULLS), the
    frame is converted to a range of positions among these rows, and the resulting position is converted back to a row.
    For example, if rows 1, 4 and 5 count, the frame from row 2 to 5 has the positions 1 and 2.
    """
    n = len(low)
    filter_mask = args[1].physical(n) if row is not FrameRow.NTH and len(args) == 2 else None
    counted = _counted_rows(args[0], ignore_nulls, filter_mask, n)
    counted_rows: Int64s | None = None
    if counted is not None:
        counted_rows, before = np.flatnonzero(counted), prefix_counts(counted)
        low, high = before[low], before[high]
    if row is FrameRow.LAST:
        target = high - 1
    else:
        target = low + (_nth_index(call) if row is FrameRow.NTH else 0)
    outside = (target >= high) | (target < low)
    rows = np.where(outside, 0, target)
    if counted_rows is not None and len(counted_rows):
        rows = counted_rows[rows]
    return gathered(args[0], rows, outside)


def _counted_rows(
    vector: Vector, ignore_nulls: bool, filter_mask: pa.Array | None, n: int
) -> np.ndarray | None:
    """Return a mask of the rows that are not NULL (if NULLs are ignored) and pass the FILTER; None for all rows."""
    counted: np.ndarray | None = None
    if ignore_nulls and vector.null_count:
        counted = pc.is_valid(vector.physical(n)).to_numpy(zero_copy_only=False)
    if filter_mask is not None:
        flags = true_flags(filter_mask)
        counted = flags if counted is None else counted & flags
    return counted


def _nth_index(call: WindowCall) -> int:
    nth = constant_number(call, 1)
    if nth <= 0:
        raise ExecutionError(
            "DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", f"nth_value counts from 1, {nth} is out of range."
        )
    return nth - 1


def constant_number(call: WindowCall, index: int) -> int:
    """Return an argument that is a literal whole number. Raises Unsupported for other arguments."""
    value = call.args[index]
    if not isinstance(value, Literal) or not isinstance(value.value, int):
        raise Unsupported(f"{call.function} needs a literal whole number, not {value}")
    return value.value


def _extreme(vector: Vector, low: Int64s, high: Int64s, largest: bool) -> WindowResult:
    """Compute MIN or MAX of strings or nested values.

    Of equal nested values, which can differ in the sign of a zero, the first one wins.
    """
    if t.is_nested(vector.dtype):
        return _extreme_by(vector, vector, low, high, largest, is_last=False)
    vector = vector.filled(len(low))
    ranks, values = reduce.ranks(vector)
    valid = validity(vector.data)
    neutral = -1 if largest else len(values)
    if valid is not None:
        ranks = np.where(valid, ranks, neutral)
    best = fold_ranges(ranks, low, high, np.maximum if largest else np.minimum, neutral)
    missing = best == neutral
    return gathered(Vector(vector.dtype, values), np.where(missing, 0, best), missing)


def _extreme_by(
    value: Vector, by: Vector, low: Int64s, high: Int64s, largest: bool, *, is_last: bool
) -> WindowResult:
    """Return the values of the rows with the largest or smallest ``by``. is_last: the last of several such rows wins.

    Rank and row number are folded as one integer, ``rank * n + row``. If the first row wins, or the smallest rank, the row
    number counts from the end, so that the fold prefers the right one of equal ranks.
    """
    by = by.filled(len(low))
    n = len(by.data)
    ordered = reduce.ordered_integers(by)
    if ordered is None:
        ordered, _ = reduce.ranks(by)
    valid = validity(by.data)
    present = np.arange(n) if valid is None else np.flatnonzero(valid)
    _, ranks = np.unique(ordered[present], return_inverse=True)
    counts_from_end = largest != is_last
    neutral = -1 if largest else _INT64.max
    ranks_and_rows = np.full(n, neutral, np.int64)
    ranks_and_rows[present] = ranks * n + (n - 1 - present if counts_from_end else present)
    best = fold_ranges(ranks_and_rows, low, high, np.maximum if largest else np.minimum, neutral)
    missing = best == neutral
    rows = np.where(missing, 0, best) % n
    return gathered(value, np.where(missing, 0, n - 1 - rows) if counts_from_end else rows, missing)
