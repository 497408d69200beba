"""A table from distinct strings or binaries to their positions: by a hash of theirs, then byte by byte."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.kernels import integer_order
from kquery_spark.kernels.hash_index import HashIndex
from kquery_spark.physical.hashing import hash_bytes
from kquery_spark.types.vector import Int64s

_ROWS_PER_VALUE = (
    2  # Arrow looks up so many rows while it takes in a value of the set, which it does for each batch
)


def places_of(data: pa.Array, values: pa.Array) -> Int64s:
    """Position of each value among distinct ones, -1 where it is absent or NULL, by Arrow's hash table."""
    indices = pc.index_in(data, value_set=values).fill_null(-1)
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int64)


class BytesIndex:
    """Positions of distinct values without NULL.

    Arrow's ``index_in`` looks rows up faster but hashes all of the values again for every batch, so it is left to batches
    that have many rows for the values. What is hashed here is hashed once, when the first small batch comes.
    """

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self._index: HashIndex | None = None
        self._hashable = True

    def lookup(self, data: pa.Array) -> Int64s:
        """Position of each value, -1 where it is absent or NULL."""
        if len(data) >= _ROWS_PER_VALUE * len(self._values) or not self._hashed():
            return places_of(data, self._values)
        assert self._index is not None
        places = self._index.lookup(hash_bytes(data).view(np.int64))
        rows = np.flatnonzero(places >= 0)
        same = pc.equal(data.take(pa.array(rows)), self._values.take(pa.array(places[rows])))
        places[rows[~same.fill_null(False).to_numpy(zero_copy_only=False)]] = -1
        return places

    def _hashed(self) -> bool:
        """Whether the values have hashes that tell them apart, as all but contrived ones do."""
        if self._index is None and self._hashable:
            hashes = hash_bytes(self._values).view(np.int64)
            self._hashable = len(integer_order.distinct_values(hashes)) == len(hashes)
            if self._hashable:
                self._index = HashIndex(hashes)
        return self._index is not None
