"""The rows that the condition of an aggregate call keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.physical.keys import Groups
from kquery_spark.types.vector import Vector


class SelectedRows:
    """Rows of a batch in their groups, and columns of just these rows; each column is gathered once for all calls."""

    def __init__(self, rows: np.ndarray, groups: Groups) -> None:
        self.rows = rows
        self.groups = _of(groups, rows)
        self._index = pa.array(rows)
        self._gathered: dict[int, tuple[pa.Array, Vector]] = {}

    def take(self, vector: Vector) -> Vector:
        """The vector's values in these rows."""
        if vector.is_scalar:
            return vector
        entry = self._gathered.get(id(vector.data))
        if entry is None:  # the array is held so that its identity stays its own
            entry = vector.data, Vector(vector.dtype, vector.data.take(self._index))
            self._gathered[id(vector.data)] = entry
        return entry[1]


class Selections:
    """The selected rows of one batch, by the condition that selects them."""

    def __init__(self, groups: Groups, num_rows: int) -> None:
        self._groups = groups
        self._num_rows = num_rows
        self._known: dict[int, tuple[Vector, SelectedRows]] = {}

    def where(self, condition: Vector) -> SelectedRows:
        """The rows for which the condition is true."""
        entry = self._known.get(id(condition))
        if entry is None:
            true_flags = pc.fill_null(condition.physical(self._num_rows), False).to_numpy(
                zero_copy_only=False
            )
            entry = condition, SelectedRows(np.flatnonzero(true_flags), self._groups)
            self._known[id(condition)] = entry
        return entry[1]


def _of(groups: Groups, rows: np.ndarray) -> Groups:
    """The groups of these rows; groups without a row stay."""
    if groups.count == 1:
        return Groups(groups.ids[: len(rows)], 1, groups.first_rows, np.array([len(rows)]))
    return Groups(groups.ids[rows], groups.count, groups.first_rows)
