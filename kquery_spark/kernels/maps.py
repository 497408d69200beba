"""Builds maps from entries, and treats NULL keys, duplicate keys and -0.0 as Spark's ``ArrayBasedMapBuilder`` does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.kernels.elements import Mask, cast_nullability, list_offsets, value_ranks
from kquery_spark.kernels.equal_rows import first_rows
from kquery_spark.kernels.ordered_bytes import normalize_zeros
from kquery_spark.kernels.utf8 import replace_malformed
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import Int64s


def map_array(keys: pa.Array, items: pa.Array, sizes: Int64s, nulls: Mask, dtype: pa.DataType) -> pa.Array:
    """Build a map array of consecutive entries; each row takes the next ``sizes`` of them."""
    keys, items = cast_nullability(keys, dtype.key_type), cast_nullability(items, dtype.item_type)
    offsets = pa.array(list_offsets(sizes, nulls), mask=np.append(nulls, False))
    return pa.MapArray.from_arrays(offsets, keys, items, type=dtype)


def build_maps(
    rows: Int64s,
    keys: pa.Array,
    items: pa.Array,
    nulls: Mask,
    dtype: pa.DataType,
    last_wins: bool,
    keeps_zeros: bool = False,
) -> pa.Array:
    """Build maps of entries that belong to ``rows``, which ascend.

    A NULL key is an error. Duplicate keys are an error unless ``last_wins``: then the entry stays at the position of the
    first one and has the value of the last one. A key of -0.0 becomes 0.0, but ``keeps_zeros`` preserves it in maps without
    duplicate keys.
    """
    ids = value_ranks(keys) + 1
    marks = rows * (int(ids.max(initial=0)) + 1) + ids  # one number for each pair of row and key
    first = first_rows(marks) if len(marks) else np.zeros(0, np.int64)
    is_repeated = np.ones(len(rows), np.bool_)
    is_repeated[first] = False
    missing = ids == 0
    wrong = np.flatnonzero(missing if last_wins else missing | is_repeated)
    if len(wrong):
        if missing[wrong[0]]:
            raise ExecutionError("NULL_MAP_KEY", "Cannot use null as map key.")
        key = replace_malformed(keys.slice(int(wrong[0]), 1))[0]
        raise ExecutionError("DUPLICATED_MAP_KEY", f"Duplicate map key {key} was found.")
    sizes = np.bincount(rows[first], minlength=len(nulls))
    if len(first) < len(rows):
        _, group = np.unique(marks, return_inverse=True)
        last = np.zeros(len(first), np.int64)
        last[group] = np.arange(len(rows))  # for repeated indices, numpy stores the last value
        reserve_gather([keys, items], first)
        keys, items = keys.take(pa.array(first)), items.take(pa.array(last[group[first]]))
    if t.is_fractional(keys.type):
        preserved = (
            ~np.isin(rows[first], rows[is_repeated]) if keeps_zeros else np.zeros(len(first), np.bool_)
        )
        keys = pc.if_else(pa.array(preserved), keys, normalize_zeros(keys))
    return map_array(keys, items, sizes, nulls, dtype)
