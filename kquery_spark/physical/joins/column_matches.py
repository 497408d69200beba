"""The values of one key column of a join table with several: a row whose value is not among them has no match."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kquery_spark.cached_property import cached_property
from kquery_spark.kernels.hash_index import HashIndex
from kquery_spark.kernels.integer_order import distinct_values
from kquery_spark.physical.joins.key_space import KeySpace, may_have_flags
from kquery_spark.types.vector import Int64s, Vector


class ColumnMatches:
    """Tests values of probe rows for membership in a key column. The first test builds the flags or the index.

    values: the key column of ``num_rows`` build rows. space: its encoding. value_range: its lowest and highest value, as in
    ``JoinTable.ranges``.
    """

    def __init__(
        self, values: Vector, num_rows: int, space: KeySpace, value_range: tuple[int, int] | None
    ) -> None:
        self._values = values
        self._num_rows = num_rows
        self._space = space
        self.ranges = [value_range]

    @property
    def is_direct(self) -> bool:
        """True if ``contains`` takes little time per row: it reads one flag."""
        return not self._space.by_value and self._has_flags

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

    @property
    def _has_flags(self) -> bool:
        return may_have_flags(self._space.size, self._num_rows)

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
