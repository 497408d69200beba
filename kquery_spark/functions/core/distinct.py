"""The last resort for rare functions: runs Python once for each distinct combination of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels.integer_order import runs
from kquery_spark.run_control import bounding_control
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import Data, Int64s, Vector

_UNCHECKED_TEXT_BYTES = 1 << 18


def values(array: pa.Array) -> list[Any]:
    """Python values, with dates and times as integers."""
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
    """``fn`` of each row's arguments; NULL where an argument is NULL or ``fn`` gives None."""
    dtype = context.dtype if dtype is None else dtype
    length = context.num_rows
    codes = np.zeros(length, np.int64)
    present = np.ones(length, np.bool_)
    tables: list[list[Any]] = []
    for arg in args:
        if arg.is_scalar:
            if not arg.data.is_valid:
                return pa.nulls(length, dtype)
            tables.append(values(arg.array(1)))
            continue
        table, index = (arg.data.dictionary, arg.data.indices) if arg.is_dictionary else _keys(arg.plain())
        if index.null_count:
            present &= np.asarray(index.is_valid().to_numpy(zero_copy_only=False))
            index = index.fill_null(0)
        tables.append(values(table))
        codes = codes * max(1, len(table)) + index.to_numpy(zero_copy_only=False)
    selected = np.compress(present, codes)
    same = runs(selected)
    columns = _columns(tables, selected.take(same.firsts))
    results = list(_reserve_results(fn(*row) for row in zip(*columns, strict=True)))
    result_indices = np.zeros(length, np.int64)
    result_indices[present] = same.ids()
    array = _from_values(results, dtype)
    reserve_gather([array], np.where(present, result_indices, -1))
    return array.take(pa.array(result_indices, mask=~present))


def _columns(tables: Sequence[list[Any]], codes: Int64s) -> list[list[Any]]:
    """Split combined indices into values, one list per table; the index of the last table varies fastest."""
    columns = []
    for table in reversed(tables):
        size = max(1, len(table))
        columns.append([table[i] for i in (codes % size)] if size > 1 else table * len(codes))
        codes = codes // size
    return columns[::-1]


def _reserve_results(results: Iterable[Any]) -> Iterable[Any]:
    """Return the values unchanged; if the run has a memory limit, reserve their bytes and fail if they exceed it."""
    control = bounding_control()
    if control is None:
        return results

    def counted() -> Iterator[Any]:
        total = seen = 0
        for value in results:
            total += len(value) if isinstance(value, str | bytes) else 8
            if total - seen > _UNCHECKED_TEXT_BYTES:
                control.reserve(total)
                seen = total
            yield value

    return counted()


def _keys(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Distinct values and each row's index among them; floats by their bits, so that -0.0 is not 0.0."""
    if pa.types.is_floating(array.type):
        keys = array.view(pa.int64() if array.type == t.DOUBLE else pa.int32()).dictionary_encode()
        return keys.dictionary.view(array.type), keys.indices
    if pa.types.is_null(array.type):
        return array, pa.nulls(len(array), pa.int32())
    keys = array.dictionary_encode()
    return keys.dictionary, keys.indices
