"""Reductions over numbered groups in numpy: exact sums, counts and extremes.

Row i belongs to group ``ids[i]``. ``np.bincount`` and ``np.ufunc.at`` reduce all groups at once, without sorting the rows.
"""

from __future__ import annotations

import decimal
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.kernels.ordered_bytes import has_floats, ordered_bytes
from kquery_spark.physical.grouping.groups import MAX_COMPILED_GROUPS, Groups, loops_for
from kquery_spark.physical.grouping.key_values import as_integers
from kquery_spark.types import names as t
from kquery_spark.types.units import INT64_MAX
from kquery_spark.types.vector import Data, Int64s, Vector, decimal_words, slots, validity

Doubles = npt.NDArray[np.float64]
_SAMPLE_ROWS = 4096
_LOW_HALF = np.int64(0xFFFFFFFF)
_EXACT = decimal.Context(prec=40)
_SIGN = np.int64(-(2**63))
_Item = TypeVar("_Item", bound=np.generic)


def valid_rows(data: pa.Array, groups: Groups) -> tuple[Int64s, Int64s | None]:
    """Return the group ids of the rows that are not NULL, and the positions of these rows (None: all rows)."""
    rows = _valid_positions(data)
    return _ids_at(groups.ids, rows, groups.count), rows


def _valid_positions(data: pa.Array) -> Int64s | None:
    """Return the positions of the rows that are not NULL; None for all rows.

    The rows are selected by position, because numpy takes several times as long to select by a mask.
    """
    valid = validity(data)
    return None if valid is None else np.flatnonzero(valid)


def _ids_at(ids: npt.NDArray[_Item], rows: Int64s | None, count: int) -> npt.NDArray[_Item]:
    """Return the group ids of these rows (None: all). With a single group, all ids are 0, so the first ones serve."""
    if rows is None:
        return ids
    return ids[: len(rows)] if count == 1 else ids.take(rows)


def take_rows(values: npt.NDArray[_Item], rows: Int64s | None) -> npt.NDArray[_Item]:
    """Return the values of these rows (None: all)."""
    return values if rows is None else values.take(rows, axis=0)


def count_valid(data: pa.Array, groups: Groups) -> Int64s:
    """Return the number of values that are not NULL, per group."""
    rows = _valid_positions(data)
    if groups.count == 1:
        return np.array([len(data) if rows is None else len(rows)], np.int64)
    if rows is None:
        return groups.sizes
    return np.bincount(groups.compact_ids.take(rows), minlength=groups.count)


def sum_int64(values: Int64s, ids: npt.NDArray[np.integer], count: int) -> pa.Array:
    """Return the exact sum of the int64 values of each group: as int64 if all sums fit, otherwise as decimal128(38, 0).

    ids: the group of each value, less than ``count``, as int64 or uint16. If the largest magnitude times the number of rows
    fits into int64, no sum can overflow, and int64 additions are exact: in the compiled loop (many rows, few groups) or in
    numpy. If it does not fit, the upper and the lower 32 bits are summed separately: sums of 32-bit numbers cannot overflow
    below 2^31 rows.
    """
    if len(values) == 0:
        return pa.array(np.zeros(count, np.int64))
    if 1 < count <= MAX_COMPILED_GROUPS:
        sums = _compiled_sums(values, ids, count)
        if sums is not None:
            return pa.array(sums)
    bound = max(abs(int(values.min())), abs(int(values.max())))
    if bound * len(values) <= INT64_MAX:
        if count == 1:
            return pa.array([int(values.sum())], pa.int64())
        sums = np.zeros(count, np.int64)
        np.add.at(sums, ids, values)
        return pa.array(sums)
    high, low = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(high, ids, values >> 32)
    np.add.at(low, ids, values & 0xFFFFFFFF)
    return dk.narrow_if_possible(_join_words(high, low))


def _compiled_sums(values: Int64s, ids: npt.NDArray[np.integer], count: int) -> Int64s | None:
    """Return sums from the compiled loop; None without the loop, or if a sum may have overflowed."""
    loops = loops_for(len(values))
    if loops is None:
        return None
    lanes = np.zeros((loops.LANES, count), np.int64)
    largest = loops.sum_groups(np.ascontiguousarray(values), np.ascontiguousarray(ids), lanes)
    sums: Int64s = lanes.sum(axis=0)
    return sums if (largest + 1) * len(values) <= INT64_MAX else None


def _join_words(high: Int64s, low: Int64s) -> pa.Array:
    """Return ``high * 2^32 + low`` (low is not negative) as 128-bit integers.

    The two 64-bit words of the result are added like digits: the lower word overflows exactly if the total is less than
    one of its terms, and then 1 is carried to the upper word.
    """
    words = np.empty((len(high), 2), np.int64)
    shifted = (high << 32).view(np.uint64)
    total = shifted + low.view(np.uint64)
    words[:, 0] = total.view(np.int64)
    words[:, 1] = (high >> 32) + (total < shifted)
    return pa.Array.from_buffers(pa.decimal128(38, 0), len(high), [None, pa.py_buffer(words)], 0)


def sum_decimal(vector: Vector, groups: Groups, scale: int) -> pa.Array:
    """Return exact sums of a decimal column as decimal(38, scale), in the narrow form if possible. NULLs count as 0.

    A 128-bit value is divided into four digits of 32 bits. The digits are summed separately in int64, which cannot overflow
    below 2^31 rows, and the sums are put together with carries (``_from_digits``).
    """
    rows = _valid_positions(vector.data)
    ids = _ids_at(groups.compact_ids, rows, groups.count)
    if vector.is_narrow:
        values = np.asarray(dk.as_int64(vector.data))
        total = sum_int64(take_rows(values, rows), ids, groups.count)
        return total if pa.types.is_int64(total.type) else _rescaled(total, scale)
    low, high = take_rows(decimal_words(vector.data.cast(pa.decimal128(38, scale))), rows).T
    parts = (low & _LOW_HALF, (low >> 32) & _LOW_HALF, high & _LOW_HALF, high >> 32)
    sums = []
    for part in parts:
        total = np.zeros(groups.count, np.int64)
        np.add.at(total, ids, part)
        sums.append(total)
    return _from_digits(sums, scale)


def _from_digits(sums: list[Int64s], scale: int) -> pa.Array:
    """Combine sums of 32-bit digits, lowest first, into decimal(38, scale). Sums of more than 38 digits become NULL.

    As in addition on paper, each digit keeps its lower 32 bits, and the upper bits are carried to the next digit.
    """
    carry = np.zeros(len(sums[0]), np.int64)
    digits = []
    for total in sums:
        carry = carry + total
        digits.append(carry & _LOW_HALF)
        carry = carry >> 32
    # The last digit is signed, so the value fits into 128 bits if the last carry is nothing but the extended sign.
    lost = carry != np.where(digits[3] >> 31, -1, 0)
    words = np.empty((len(carry), 2), np.int64)
    words[:, 0] = digits[0] | (digits[1] << 32)
    words[:, 1] = digits[2] | (digits[3] << 32)
    array = pa.Array.from_buffers(pa.decimal128(38, scale), len(carry), [None, pa.py_buffer(words)], 0)
    limit = pa.scalar(decimal.Decimal(10**38 - 1).scaleb(-scale, _EXACT), array.type)
    lowest = pa.scalar(decimal.Decimal(1 - 10**38).scaleb(-scale, _EXACT), array.type)
    over = pc.or_(pc.or_(pc.greater(array, limit), pc.less(array, lowest)), pa.array(lost))
    return dk.narrow_if_possible(
        pc.if_else(over, pa.scalar(None, array.type), array) if over.true_count else array
    )


def _rescaled(total: pa.Array, scale: int) -> pa.Array:
    """Return the same 128-bit integers as decimals with ``scale`` digits after the decimal point. Nothing is copied."""
    return pa.Array.from_buffers(
        pa.decimal128(38, scale), len(total), total.buffers(), total.null_count, total.offset
    )


def sum_float(data: pa.Array, groups: Groups) -> Doubles:
    """Return the sums of doubles per group. NULLs count as 0."""
    ids, rows = valid_rows(data, groups)
    values = take_rows(floats(data), rows)
    if groups.count == 1:
        with np.errstate(invalid="ignore"):  # infinities of both signs add up to NaN, as in Spark
            return np.array([values.sum()])
    return sum_weights(ids, values, groups.count)


def sum_weights(ids: Int64s, weights: Doubles, count: int) -> Doubles:
    """Return the sums of doubles per group."""
    sums = np.bincount(ids, weights=weights, minlength=count)
    return sums.astype(np.float64, copy=False)  # numpy returns integers for no rows at all


def ordered_integers(vector: Vector) -> Int64s | None:
    """Return int64 values with the same order as the vector's values in Spark; None for types without such integers.

    The slots of NULLs have arbitrary values.
    """
    integers = as_integers(vector)
    if integers is not None:
        return np.asarray(dk.as_int64(integers))
    if t.is_fractional(vector.dtype):
        return float_order(vector.data)
    return None


def float_order(data: pa.Array) -> Int64s:
    """Return doubles as int64 in Spark's order: NaN is above infinity, and -0.0 equals 0.0.

    The bits of positive doubles, read as integers, have the order of the doubles. Those of negative ones have the reverse
    order, which ``_SIGN - bits`` turns around. Adding 0.0 turns -0.0 into 0.0.
    """
    values = data.cast(t.DOUBLE).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return np.asarray(np.where(bits < 0, _SIGN - bits, bits), np.int64)


def ranks(vector: Vector) -> tuple[Int64s, pa.Array]:
    """Return the rank of each row among the sorted distinct values, and these values.

    This is for types that ``ordered_integers`` does not support. For the rows 'b', 'a', 'b', the ranks are 1 0 1, and
    the values are 'a', 'b'.
    """
    if t.is_nested(vector.dtype):
        vector = Vector(t.BINARY, ordered_bytes(vector.data))
    data = vector.data
    if not pa.types.is_dictionary(data.type):
        data = vector.plain().dictionary_encode()
    values = data.dictionary
    if values.null_count:
        data = data.dictionary.take(data.indices).dictionary_encode()
        values = data.dictionary
    order = pc.sort_indices(values)
    rank = np.empty(len(values), np.int64)
    rank[order.to_numpy()] = np.arange(len(values))
    indices = data.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return (rank[indices] if len(values) else np.zeros(len(indices), np.int64)), values.take(order)


def extreme(vector: Vector, groups: Groups, largest: bool) -> Data:
    """Return the largest or smallest value of each group in the vector's physical form; NULL for a group without values."""
    if t.is_fractional(vector.dtype):
        return _float_extreme(vector, groups, largest)
    if t.is_nested(vector.dtype):
        return _nested_extreme(vector, groups, largest)
    ids, rows = valid_rows(vector.data, groups)
    ordered = ordered_integers(vector)
    values: pa.Array | None = None
    if ordered is None:
        ordered, values = ranks(vector)
    valid_values = take_rows(ordered, rows)
    start = np.iinfo(np.int64).min if largest else np.iinfo(np.int64).max
    best = np.full(groups.count, start, np.int64)
    if groups.count == 1:
        if len(valid_values):
            best[0] = valid_values.max() if largest else valid_values.min()
    else:
        _keep_best(best, ids, valid_values, np.maximum if largest else np.minimum, largest)
    return values_of(vector, best, _without_value(vector.data, groups, best == start), values)


def _keep_best(
    best: npt.NDArray[Any], ids: Int64s, values: npt.NDArray[Any], function: np.ufunc, largest: bool
) -> None:
    """Update ``best`` with the extreme of each group.

    After a sample of rows, few other rows can still improve an extreme. Finding these by one vectorized comparison takes a
    third of the time of ``ufunc.at`` for all rows. NaN is never skipped, because no comparison with it is true.
    """
    if len(values) > 4 * _SAMPLE_ROWS:
        function.at(best, ids[:_SAMPLE_ROWS], values[:_SAMPLE_ROWS])
        ids, values = ids[_SAMPLE_ROWS:], values[_SAMPLE_ROWS:]
        reached = np.take(best, ids)
        left = np.flatnonzero(~(values <= reached if largest else values >= reached))
        ids, values = ids[left], values[left]
    function.at(best, ids, values)


def _without_value(data: pa.Array, groups: Groups, untouched: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return flags for the groups without a value. untouched: groups whose extreme is still the start value."""
    return untouched & (count_valid(data, groups) == 0) if untouched.any() else untouched


def _nested_extreme(vector: Vector, groups: Groups, largest: bool) -> pa.Array:
    """Return the extremes of nested values. Of equal values, which can differ in the sign of a zero, the first one wins."""
    ranked, _ = ranks(vector)
    valid = validity(vector.data)
    rows = np.arange(len(ranked)) if valid is None else np.flatnonzero(valid)
    order = rows[np.argsort(-ranked[rows] if largest else ranked[rows], kind="stable")][::-1]
    chosen = np.full(groups.count, -1, np.int64)
    chosen[groups.ids[order]] = order  # in reverse order: the last assignment, that of the best row, remains
    return vector.data.take(pa.array(np.maximum(chosen, 0), mask=chosen < 0))


def _float_extreme(vector: Vector, groups: Groups, largest: bool) -> pa.Array:
    """Return the extremes of floats. NaN is above infinity in Spark: it wins in ``maximum`` and loses in ``fmin``.

    0.0 and -0.0 are equal in Spark, so the first one of a group is its result.
    """
    ids, rows = valid_rows(vector.data, groups)
    values = floats(vector.data)
    valid_values = take_rows(values, rows)
    best = np.full(groups.count, -np.inf if largest else np.nan)
    function = np.maximum if largest else np.fmin
    with np.errstate(invalid="ignore"):
        if groups.count > 1:
            _keep_best(best, ids, valid_values, function, largest)
        elif len(valid_values):
            best[0] = function.reduce(valid_values)
    untouched = np.isneginf(best) if largest else np.isnan(best)
    if (best == 0).any():
        # Assign in reverse, so that the last assignment, that of the first zero, remains.
        zeros = np.flatnonzero(valid_values == 0)[::-1]
        firsts = np.zeros(groups.count)
        firsts[ids[zeros] if groups.count > 1 else np.zeros(len(zeros), np.intp)] = valid_values[zeros]
        best = np.where(best == 0, firsts, best)
    empty = _without_value(vector.data, groups, untouched)
    return pa.array(best, mask=empty if empty.any() else None).cast(vector.dtype, safe=False)


def has_negative_zero(vector: Vector) -> bool:
    """Return whether a float or double column has a -0.0. For a nested column with floats, the answer is always True."""
    if not t.is_fractional(vector.dtype):
        return has_floats(vector.dtype)
    values = floats(vector.data.fill_null(0.0))
    return bool((np.signbit(values) & (values == 0)).any())


def floats(data: pa.Array) -> Doubles:
    """Return a float or double column as a numpy array of doubles. The slots of NULLs have arbitrary values."""
    return slots(data.cast(t.DOUBLE))


def values_of(
    vector: Vector, best: Int64s, empty: npt.NDArray[np.bool_], values: pa.Array | None
) -> pa.Array:
    """Convert integers from ``ordered_integers``, or ranks among ``values``, back to values; NULL where ``empty``."""
    mask = empty if empty.any() else None
    if values is not None:
        return values.take(pa.array(np.where(empty, 0, best), mask=mask))
    return _from_order(vector, best, mask)


def _from_order(vector: Vector, best: Int64s, mask: npt.NDArray[np.bool_] | None) -> Data:
    """Convert the integers of ``ordered_integers`` back to the physical form of ``vector``. mask: True for NULL."""
    dtype = vector.dtype
    if t.is_fractional(dtype):
        bits = np.where(best < 0, _SIGN - best, best)
        return pa.array(
            np.where(mask, 0.0, bits.view(np.float64)) if mask is not None else bits.view(np.float64),
            mask=mask,
        ).cast(dtype, safe=False)
    if mask is not None:
        best = np.where(mask, 0, best)
    array = pa.array(best, mask=mask)
    if vector.is_narrow or dtype == t.LONG:
        return array
    if dtype == t.DATE:
        return array.cast(t.INT).view(t.DATE)
    if t.has_long_counts(dtype):
        return array.view(dtype)
    return array.cast(dtype)
