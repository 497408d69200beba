"""The values of one key column of a join table with several: a row whose value is not among them has no match."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kquery_spark.cached_property import cached_property
from kquery_spark.kernels.hash_index import HashIndex, hash_index_bytes
from kquery_spark.kernels.integer_order import distinct_values
from kquery_spark.physical.joins.key_space import DirectMemory, KeySpace, reserve_flags
from kquery_spark.types.vector import Int64s, Vector


class ColumnMatches:
    """Tests values of probe rows for membership in a key column. The first test builds the flags or the index.

    values: the key column of ``num_rows`` build rows. space: its encoding. value_range: its lowest and highest value, as in
    ``JoinTable.ranges``. memory: the memory that is left for the flags.
    """

    def __init__(
        self,
        values: Vector,
        num_rows: int,
        space: KeySpace,
        value_range: tuple[int, int] | None,
        memory: DirectMemory,
    ) -> None:
        self._values = values
        self._num_rows = num_rows
        self._space = space
        self.ranges = [value_range]
        self._has_flags = not space.by_value and reserve_flags(space.size, num_rows, memory)

    @property
    def is_direct(self) -> bool:
        """True if ``contains`` takes little time per row: it reads one flag."""
        return self._has_flags

    @property
    def nbytes(self) -> int:
        """The memory of the key column, and of the flags or the index, even before they are built."""
        values = int(self._values.data.nbytes)
        if self._space.by_value:
            return values
        return values + (self._space.size if self._has_flags else hash_index_bytes(self._num_rows))

    def contains(self, keys: Sequence[Vector], num_rows: int) -> npt.NDArray[np.bool_]:
        """Return, for each value of a probe column, whether any build row has it. keys: this column alone."""
        (key,) = keys
        codes = self._space.encode(key, num_rows)
        # An encoding by value has a code for each value of the build rows, and one for all other values. NULL in a
        # null-safe column passes even if no build row has it.
        if self._space.by_value:
            return codes < self._space.size - 1
        if self._has_flags:
            return self._flags[codes]
        return self._index.lookup(codes) >= 0

    @cached_property
    def _flags(self) -> npt.NDArray[np.bool_]:
        flags = np.zeros(self._space.size, np.bool_)
        flags[self._build_codes()] = True
        return flags

    @cached_property
    def _index(self) -> HashIndex:
        return HashIndex(distinct_values(self._build_codes()))

    def _build_codes(self) -> Int64s:
        """Return the codes of the build rows, without the last possible code, which only a NULL without a match has."""
        codes = self._space.encode(self._values, self._num_rows)
        return codes[codes < self._space.size - 1]
