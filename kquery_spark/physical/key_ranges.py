"""Range partitioning: finds the range of each row's key.

Range-partitioned exchanges send rows to the tasks that read ranges of clustered files, or that sort ranges of the result.
For the bounds 10 and 20, the keys 5, 10, 19 and 20 are in the ranges 0, 1, 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.physical.aggregates import reduce
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, decimal_words, true_flags, validity

_INT64 = np.iinfo(np.int64)


def range_ids(
    key: Vector,
    num_rows: int,
    bounds: Sequence[Any],
    descending: bool = False,
    nulls_last: bool = False,
) -> Int64s:
    """Return the range of each row's key, from 0 to ``len(bounds)``.

    bounds: the first value of each range but the first, in the form of ``range_values``. descending: range 0 has the largest
    keys. nulls_last: NULL is in the last range, otherwise in range 0.
    """
    data = key.physical(num_rows)
    ids = _ids(range_values(Vector(key.dtype, data)), bounds)
    if descending:
        ids = len(bounds) - ids
    valid = validity(data)
    return ids if valid is None else np.where(valid, ids, len(bounds) if nulls_last else 0)


def has_ranges(dtype: pa.DataType) -> bool:
    """Return True if values of this type can be partitioned by range."""
    return not (t.is_nested(dtype) or pa.types.is_null(dtype))


def range_values(key: Vector) -> Int64s | pa.Array:
    """Return the keys in a form with the same order: integers (arbitrary for NULL), strings or binaries.

    Equal keys have equal values. Different keys can also have equal values, such as decimals beyond int64.
    """
    integers = reduce.ordered_integers(key)
    if integers is not None:
        return integers
    if t.is_decimal(key.dtype):
        return _clamped(key.data)
    return key.data


def _clamped(data: pa.Array) -> Int64s:
    """Return unscaled decimals as int64. Values that do not fit are clamped to the smallest or largest int64."""
    low, high = decimal_words(data).T
    fits = high == (low >> 63)
    return np.where(fits, low, np.where(high < 0, _INT64.min, _INT64.max))


def _ids(values: Int64s | pa.Array, bounds: Sequence[Any]) -> Int64s:
    """Return, for each value, the number of bounds that are not greater; that is its range in ascending order."""
    if isinstance(values, np.ndarray):
        return np.searchsorted(np.asarray(bounds, np.int64), values, side="right")
    if pa.types.is_dictionary(values.type):
        codes = values.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return _ids(values.dictionary, bounds)[codes] if len(values.dictionary) else np.zeros(len(codes), int)
    ids = np.zeros(len(values), np.int64)
    for bound in bounds:
        ids += true_flags(pc.greater_equal(values, pa.scalar(bound, values.type)))
    return ids
