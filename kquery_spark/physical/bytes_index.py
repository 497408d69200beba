"""Maps distinct strings or binaries to their positions by 64-bit hashes, and verifies each hit by comparing the bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.kernels import integer_order
from kquery_spark.kernels.hash_index import HashIndex, hash_index_bytes
from kquery_spark.physical.hashing import hash_bytes
from kquery_spark.types.vector import Int64s

# Arrow inserts all values again for each batch, and one insertion takes as long as this number of lookups.
_ROWS_PER_VALUE = 2


def find_positions(data: pa.Array, values: pa.Array) -> Int64s:
    """Return the position of each value among the distinct ``values`` by Arrow's hash table; -1 if absent or NULL."""
    indices = pc.index_in(data, value_set=values).fill_null(-1)
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int64)


class BytesIndex:
    """Finds the positions of values among distinct values without NULL.

    Arrow's ``index_in`` looks up rows faster, but hashes all distinct values again for every batch. So it is only used for
    batches with many rows in comparison with the number of values. For the other batches, a hash table is built once, when
    the first of them arrives.
    """

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self._index: HashIndex | None = None
        self._hashable = True

    @property
    def nbytes(self) -> int:
        """The memory of the values and of the hash table, even before it is built."""
        return int(self._values.nbytes) + hash_index_bytes(len(self._values))

    def lookup(self, data: pa.Array) -> Int64s:
        """Return the position of each value; -1 if it is absent or NULL."""
        if len(data) >= _ROWS_PER_VALUE * len(self._values) or not self._build_index():
            return find_positions(data, self._values)
        assert self._index is not None
        places = self._index.lookup(hash_bytes(data).view(np.int64))
        rows = np.flatnonzero(places >= 0)
        same = pc.equal(data.take(pa.array(rows)), self._values.take(pa.array(places[rows])))
        places[rows[~same.fill_null(False).to_numpy(zero_copy_only=False)]] = -1
        return places

    def _build_index(self) -> bool:
        """Build the hash table on first use. Return False if two values have equal hashes, which is extremely unlikely."""
        if self._index is None and self._hashable:
            hashes = hash_bytes(self._values).view(np.int64)
            self._hashable = len(integer_order.distinct_values(hashes)) == len(hashes)
            if self._hashable:
                self._index = HashIndex(hashes)
        return self._index is not None
