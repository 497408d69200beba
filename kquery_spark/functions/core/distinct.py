"""The last resort for rare functions: runs Python once for each distinct combination of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.functions.registry import CallContext, Kernel
from kquery_spark.kernels.integer_order import runs
from kquery_spark.run_control import bounding_control, check_run
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import Data, Int64s, Vector

_UNCHECKED_STRING_BYTES = 1 << 18
_CALLS_BETWEEN_CHECKS = 64  # calls between two checks for cancellation; a call can take milliseconds
_MAX_CODES = 2**62  # up to this number of possible combinations, combined indices fit into int64


def values(array: pa.Array) -> list[Any]:
    """Return the elements of an array as Python values, with dates and times as integers."""
    dtype = array.type
    if dtype == t.DATE:
        array = array.view(pa.int32())
    elif t.has_long_counts(dtype):
        array = array.view(pa.int64())
    return list(array.to_pylist())


def _from_values(results: list[Any], dtype: pa.DataType) -> pa.Array:
    if dtype == t.DATE:
        return pa.array(results, pa.int32()).cast(dtype)
    if pa.types.is_timestamp(dtype) or dtype == t.TIME:
        return pa.array(results, pa.int64()).cast(dtype)
    return pa.array(results, dtype)


def per_distinct(
    fn: Callable[..., Any], args: Sequence[Vector], context: CallContext, dtype: pa.DataType | None = None
) -> Data:
    """Return ``fn`` of each row's arguments; NULL if an argument is NULL or ``fn`` returns None.

    The dictionary indices of a row are combined to one integer, and ``fn`` runs once for each distinct integer. For
    example, with dictionaries of 10 and 3 values, the indices (4, 2) become 4 * 3 + 2 = 14.
    """
    dtype = context.dtype if dtype is None else dtype
    length = context.num_rows
    codes, cardinality = np.zeros(length, np.int64), 1
    present = np.ones(length, np.bool_)
    # For each argument: its values, and for each row the index of its value (None for a scalar).
    columns: list[tuple[list[Any], Int64s | None]] = []
    for arg in args:
        if arg.is_scalar:
            if not arg.data.is_valid:
                return pa.nulls(length, dtype)
            columns.append((values(arg.array(1)), None))
            continue
        table, index = (arg.data.dictionary, arg.data.indices) if arg.is_dictionary else _keys(arg.plain())
        if index.null_count:
            present &= np.asarray(index.is_valid().to_numpy(zero_copy_only=False))
            index = index.fill_null(0)
        indices = index.to_numpy(zero_copy_only=False).astype(np.int64)
        columns.append((values(table), indices))
        size = max(1, len(table))
        if cardinality * size > _MAX_CODES:
            # Renumber the combinations that occur. Each row has one, so there are at most as many as rows.
            codes, cardinality = runs(codes).ids(), max(1, length)
        codes, cardinality = codes * size + indices, cardinality * size
    rows = np.flatnonzero(present)
    same = runs(codes.take(rows))
    firsts = rows.take(same.firsts)
    arguments = [_values_of_rows(table, indices, firsts) for table, indices in columns]
    results = list(_checked_results(fn(*row) for row in zip(*arguments, strict=True)))
    result_indices = np.zeros(length, np.int64)
    result_indices[present] = same.ids()
    array = _from_values(results, dtype)
    reserve_gather([array], np.where(present, result_indices, -1))
    return array.take(pa.array(result_indices, mask=~present))


def each_distinct(fn: Callable[..., Any]) -> Kernel:
    """Return a kernel that runs ``fn``, a function of one row's values, by ``per_distinct``."""
    return lambda args, context: per_distinct(fn, args, context)


def _values_of_rows(table: list[Any], indices: Int64s | None, rows: Int64s) -> list[Any]:
    """Return the values of an argument in these rows; an argument without indices has one value for all rows."""
    return table * len(rows) if indices is None else [table[i] for i in indices.take(rows)]


def _checked_results(results: Iterable[Any]) -> Iterator[Any]:
    """Yield the values unchanged. Raises RunStopped if the run is cancelled or exceeds its time or memory limit."""
    control, total, seen = bounding_control(), 0, 0
    for row, value in enumerate(results):
        if row % _CALLS_BETWEEN_CHECKS == 0:
            check_run()
        if control is not None:
            total += len(value) if isinstance(value, str | bytes) else 8
            if total - seen > _UNCHECKED_STRING_BYTES:
                control.reserve(total)
                seen = total
        yield value


def _keys(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the distinct values and the index of each row's value. Floats are compared by bits: -0.0 is not 0.0."""
    if pa.types.is_floating(array.type):
        keys = array.view(pa.int64() if array.type == t.DOUBLE else pa.int32()).dictionary_encode()
        return keys.dictionary.view(array.type), keys.indices
    if pa.types.is_null(array.type):
        return array, pa.nulls(len(array), pa.int32())
    keys = array.dictionary_encode()
    return keys.dictionary, keys.indices
