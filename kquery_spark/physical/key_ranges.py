"""Ranges of a key by which rows are sent to tasks: to those that read files in its order, or that share a sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.physical.aggregates import reduce
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, decimal_words, validity

_INT64 = np.iinfo(np.int64)


def range_ids(
    key: Vector,
    num_rows: int,
    bounds: Sequence[Any],
    descending: bool = False,
    nulls_last: bool = False,
) -> Int64s:
    """The range, in ``[0, len(bounds)]``, each row's key is in; a bound, as ``range_values`` has them, is the first of one.

    descending: the first range is that of the largest keys. NULL is in the first range, or with ``nulls_last`` in the last.
    """
    data = key.physical(num_rows)
    ids = _ids(range_values(Vector(key.dtype, data)), bounds)
    if descending:
        ids = len(bounds) - ids
    valid = validity(data)
    return ids if valid is None else np.where(valid, ids, len(bounds) if nulls_last else 0)


def has_ranges(dtype: pa.DataType) -> bool:
    """Whether there are ranges of a type's values."""
    return not (t.is_nested(dtype) or pa.types.is_null(dtype))


def range_values(key: Vector) -> Int64s | pa.Array:
    """The key's values in a form that has their order: integers (NULL slots hold anything), or strings or bytes.

    Values that differ may be alike here, as decimals past 18 digits are; those that are equal always are.
    """
    integers = reduce.ordered_integers(key)
    if integers is not None:
        return integers
    if t.is_decimal(key.dtype):
        return _clamped(key.data)
    return key.data


def _clamped(data: pa.Array) -> Int64s:
    """Unscaled values; those that int64 does not hold as its smallest or largest number."""
    low, high = decimal_words(data).T
    fits = high == (low >> 63)
    return np.where(fits, low, np.where(high < 0, _INT64.min, _INT64.max))


def _ids(values: Int64s | pa.Array, bounds: Sequence[Any]) -> Int64s:
    if isinstance(values, np.ndarray):
        return np.searchsorted(np.asarray(bounds, np.int64), values, side="right")
    if pa.types.is_dictionary(values.type):
        codes = values.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return _ids(values.dictionary, bounds)[codes] if len(values.dictionary) else np.zeros(len(codes), int)
    ids = np.zeros(len(values), np.int64)
    for bound in bounds:
        ids += pc.fill_null(pc.greater_equal(values, pa.scalar(bound, values.type)), False).to_numpy(
            zero_copy_only=False
        )
    return ids
