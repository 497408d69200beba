"""Converts sort keys to integers with Spark's order, including the direction and the placement of NULLs.

For ``x DESC NULLS LAST`` with the values 5, NULL, 7, the column is ``~x`` with a larger value for NULL: -6, -5, -8. Its
ascending order is 7, 5, NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.expr import SortKey
from kquery_spark.kernels.ordered_bytes import ordered_bytes
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.grouping.key_values import check_key_type
from kquery_spark.physical.sorting.string_parts import StringParts
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, decode, validity

_MAX_INTEGER = 2**62
"""Columns whose values lie between this number and its negation have an integer left that can stand for NULL."""

_SAMPLE_ROWS = 4096
_MIN_ROWS_PER_VALUE = 8
"""Ranking the values of a dictionary is cheap if there are at least this many rows per value."""

_LOW_SIGN = np.int64(-(2**63))


@dataclass(frozen=True)
class KeyStep:
    """Some of the int64 columns that represent a sort key. The lexicographic order of all of them is the requested order.

    columns: computes these columns for the given row numbers (None: all rows). is_cheap: True if this costs less than a pass
    of sorting.
    """

    columns: Callable[[Int64s | None], list[Int64s]]
    is_cheap: bool


def key_steps(keys: Iterable[tuple[SortKey, Vector]]) -> list[KeyStep]:
    """Return the steps of all keys. Later ones are needed only for rows that are equal in the columns of earlier ones."""
    return [step for key, vector in keys for step in _steps_of_key(vector, key.ascending, key.nulls_first)]


def _steps_of_key(vector: Vector, ascending: bool, nulls_first: bool) -> list[KeyStep]:
    check_key_type(vector.dtype)
    if vector.is_scalar or pa.types.is_null(vector.dtype):
        return []
    if not _is_mostly_distinct(vector):
        is_cheap = _has_few_values(vector) if vector.is_dictionary else _is_fixed_width(vector)
        return [
            KeyStep(lambda rows: _ordered_columns(_take_rows(vector, rows), ascending, nulls_first), is_cheap)
        ]
    parts = StringParts(vector.data, ascending)
    steps = [KeyStep(partial(parts.columns, part), is_cheap=False) for part in range(parts.count)]
    if vector.data.null_count:
        steps.insert(
            0, KeyStep(lambda rows: [_null_flags(_take_rows(vector, rows), nulls_first)], is_cheap=True)
        )
    return steps


def _has_few_values(dictionary: Vector) -> bool:
    return len(dictionary.data.dictionary) * _MIN_ROWS_PER_VALUE <= len(dictionary.data)


def _is_fixed_width(vector: Vector) -> bool:
    return not t.is_nested(vector.dtype) and vector.dtype not in (t.STRING, t.BINARY)


def _take_rows(vector: Vector, rows: Int64s | None) -> Vector:
    """Return a key for some rows. A dictionary with more values than there are rows is decoded."""
    if rows is None:
        return vector
    data = vector.data.take(pa.array(rows))
    if vector.is_dictionary and len(data.dictionary) > len(data):
        data = decode(data)
    return Vector(vector.dtype, data)


def _ordered_columns(vector: Vector, ascending: bool, nulls_first: bool) -> list[Int64s]:
    """Return the columns of a key. If it has NULLs, and no integer is free for them, a NULL flag comes first."""
    columns = _ordered_integers(vector)
    if not ascending:
        columns = [~column for column in columns]
    valid = validity(vector.data)
    if valid is None:
        return columns
    if len(columns) == 1:
        (values,) = columns
        low, high = int(values.min()), int(values.max())
        if low > -_MAX_INTEGER and high < _MAX_INTEGER:
            return [np.where(valid, values, low - 1 if nulls_first else high + 1)]
    return [_null_flags(vector, nulls_first), *(np.where(valid, column, 0) for column in columns)]


def _null_flags(vector: Vector, nulls_first: bool) -> Int64s:
    """Return a column of 0 and 1 that sorts NULLs before or after the values."""
    is_null = np.asarray(vector.data.is_null().to_numpy(zero_copy_only=False), np.int64)
    return 1 - is_null if nulls_first else is_null


def _ordered_integers(vector: Vector) -> list[Int64s]:
    """Return integers in the order of the values: the values themselves, two halves of them, or their ranks."""
    if t.is_nested(vector.dtype):
        vector = Vector(t.BINARY, ordered_bytes(vector.data))
    if pa.types.is_decimal128(vector.data.type):
        return _halves(vector.data)
    values = reduce.ordered_integers(vector)
    return [reduce.ranks(vector)[0] if values is None else values]


def _halves(data: pa.Array) -> list[Int64s]:
    """Return the upper and the lower 64 bits of decimals.

    The lower bits are unsigned. With their sign flipped, the order of signed integers is that of unsigned ones.
    """
    words = np.frombuffer(data.buffers()[1], np.int64, 2 * len(data), 16 * data.offset)
    return [words[1::2].copy(), words[::2] ^ _LOW_SIGN]


def _is_mostly_distinct(vector: Vector) -> bool:
    """Return True for a column of strings or binaries with few duplicates, judged by its first values.

    Sorting these by parts (``StringParts``) is faster than sorting a dictionary of nearly as many values.
    """
    if vector.is_dictionary or vector.dtype not in (t.STRING, t.BINARY) or len(vector.data) < _SAMPLE_ROWS:
        return False
    return bool(pc.count_distinct(vector.data.slice(0, _SAMPLE_ROWS)).as_py() > _SAMPLE_ROWS // 2)
