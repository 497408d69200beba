"""Maps from entries: NULL keys, equal keys and -0.0 as Spark treats them where it builds a map."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.kernels.elements import Mask, codes, list_offsets, of_type
from kquery_spark.kernels.integer_order import first_rows
from kquery_spark.kernels.ordered_bytes import normalized
from kquery_spark.kernels.utf8 import replaced
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import Int64s


def mapped(keys: pa.Array, items: pa.Array, sizes: Int64s, nulls: Mask, dtype: pa.DataType) -> pa.Array:
    """A map array of entries that lie one after the other, ``sizes`` a row."""
    keys, items = of_type(keys, dtype.key_type), of_type(items, dtype.item_type)
    offsets = pa.array(list_offsets(sizes, nulls), mask=np.append(nulls, False))
    return pa.MapArray.from_arrays(offsets, keys, items, type=dtype)


def built(
    rows: Int64s,
    keys: pa.Array,
    items: pa.Array,
    nulls: Mask,
    dtype: pa.DataType,
    last_wins: bool,
    keeps_zeros: bool = False,
) -> pa.Array:
    """Maps of entries that belong to ``rows``, which ascend.

    A NULL key is an error, and so are equal keys, unless the last of them wins: its value then has the first one's place.
    A key of -0.0 becomes 0.0, or stays where ``keeps_zeros`` and no two keys of its map are equal.
    """
    ids = codes(keys) + 1
    marks = rows * (int(ids.max(initial=0)) + 1) + ids
    first = first_rows(marks) if len(marks) else np.zeros(0, np.int64)
    is_repeated = np.ones(len(rows), np.bool_)
    is_repeated[first] = False
    missing = ids == 0
    wrong = np.flatnonzero(missing if last_wins else missing | is_repeated)
    if len(wrong):
        if missing[wrong[0]]:
            raise ExecutionError("NULL_MAP_KEY", "Cannot use null as map key.")
        key = replaced(keys.slice(int(wrong[0]), 1))[0]
        raise ExecutionError("DUPLICATED_MAP_KEY", f"Duplicate map key {key} was found.")
    sizes = np.bincount(rows[first], minlength=len(nulls))
    if len(first) < len(rows):
        _, group = np.unique(marks, return_inverse=True)
        last = np.zeros(len(first), np.int64)
        last[group] = np.arange(len(rows))  # of equal groups the last one stays
        reserve_gather([keys, items], first)
        keys, items = keys.take(pa.array(first)), items.take(pa.array(last[group[first]]))
    if t.is_fractional(keys.type):
        kept = ~np.isin(rows[first], rows[is_repeated]) if keeps_zeros else np.zeros(len(first), np.bool_)
        keys = pc.if_else(pa.array(kept), keys, normalized(keys))
    return mapped(keys, items, sizes, nulls, dtype)
