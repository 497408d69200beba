"""Converts sort keys to integers with Spark's order, including the direction and the placement of NULLs.

For ``x DESC NULLS LAST`` with the values 5, NULL, 7, the key column is ``~x`` with a larger value for NULL: -6, -5, -8. Its
ascending order is 7, 5, NULL. Several key columns are packed into one int64 if their ranges are small enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.kernels.integer_order import lexicographic_order, stable_order
from kquery_spark.kernels.ordered_bytes import ordered_bytes
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.keys import check_key_type
from kquery_spark.physical.sorting.text_order import text_ranks
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector, validity

_MAX_CODE = 2**62
_SAMPLE_ROWS = 4096


def key_columns(vector: Vector, ascending: bool, nulls_first: bool) -> list[Int64s]:
    """Return int64 columns whose ascending order is the requested order of the vector.

    There is one column; or two, a NULL flag and the values, if there are NULLs and no integer is free for them; or none if
    all values are NULL.
    """
    check_key_type(vector.dtype)
    if pa.types.is_null(vector.dtype):
        return []
    values = _ordered_integers(vector)
    values = values if ascending else ~values
    valid = validity(vector.data)
    if valid is None:
        return [values]
    low, high = int(values.min()), int(values.max())
    if low > -_MAX_CODE and high < _MAX_CODE:
        return [np.where(valid, values, low - 1 if nulls_first else high + 1)]
    flag = valid if nulls_first else ~valid
    return [flag.astype(np.int64), np.where(valid, values, 0)]


def _ordered_integers(vector: Vector) -> Int64s:
    """Return integers in the order of the values: the values themselves, or their ranks."""
    if t.is_nested(vector.dtype):
        vector = Vector(t.BINARY, ordered_bytes(vector.data))
    values = reduce.ordered_integers(vector)
    if values is not None:
        return values
    return text_ranks(vector.data) if _mostly_different(vector) else reduce.ranks(vector)[0]


def _mostly_different(vector: Vector) -> bool:
    """Return True for a column of strings or binaries with few duplicates, judged by its first values.

    Ranking these by prefixes (``text_ranks``) is faster than sorting a dictionary of nearly as many values.
    """
    if vector.is_dictionary or vector.dtype not in (t.STRING, t.BINARY) or len(vector.data) < _SAMPLE_ROWS:
        return False
    return bool(pc.count_distinct(vector.data.slice(0, _SAMPLE_ROWS)).as_py() > _SAMPLE_ROWS // 2)


def packed(columns: Sequence[Int64s]) -> Int64s | None:
    """Combine the columns to one int64 with the same order; None if the product of their ranges is too large."""
    total = 1
    spans = []
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        spans.append((low, high - low + 1))
        total *= high - low + 1
        if total >= _MAX_CODE:
            return None
    result = columns[0] - spans[0][0]
    for column, (low, span) in zip(columns[1:], spans[1:], strict=True):
        result *= span
        result += column
        result -= low
    return result


def sort_rows(columns: Sequence[Int64s], limit: int | None = None) -> Int64s:
    """Return the row numbers in sorted order (stable); with a limit, only the first ``limit`` of them.

    For a small limit, ``np.partition`` finds the candidates in linear time, and only these are sorted.
    """
    if not columns:
        raise ValueError("sorting needs a key")
    one = columns[0] if len(columns) == 1 else packed(columns)
    keys = columns if one is None else [one]
    if limit is not None and limit < len(keys[0]) // 8:
        near = _first_candidates(keys[0], limit)
        return near.take(sort_rows([k.take(near) for k in keys]))[:limit]
    return (lexicographic_order(keys) if one is None else stable_order(one))[:limit]


def _first_candidates(values: Int64s, limit: int) -> Int64s:
    """Return the candidates for the first ``limit`` rows: those whose key is not greater than that of row ``limit``."""
    bound = np.partition(values, limit)[limit] if limit else values.min()
    return np.flatnonzero(values <= bound)
