"""The rows that the FILTER condition of an aggregate call selects. Calls with the same condition share the selection."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.types.vector import Vector, true_flags


class SelectedRows:
    """Some rows of a batch and their groups. Gathers columns for these rows, each only once for all calls."""

    def __init__(self, rows: np.ndarray, groups: Groups) -> None:
        self.rows = rows
        self.groups = _selected_groups(groups, rows)
        self._index = pa.array(rows)
        self._gathered: dict[int, tuple[pa.Array, Vector]] = {}

    def take(self, vector: Vector) -> Vector:
        """Return the vector's values in the selected rows."""
        if vector.is_scalar:
            return vector
        entry = self._gathered.get(id(vector.data))
        if entry is None:  # the entry also holds the array, because Python could reuse the id of a freed one
            entry = vector.data, Vector(vector.dtype, vector.data.take(self._index))
            self._gathered[id(vector.data)] = entry
        return entry[1]


class Selections:
    """Caches the selected rows of one batch by the vector of the condition."""

    def __init__(self, groups: Groups, num_rows: int) -> None:
        self._groups = groups
        self._num_rows = num_rows
        self._known: dict[int, tuple[Vector, SelectedRows]] = {}

    def where(self, condition: Vector) -> SelectedRows:
        """Return the rows for which the condition is TRUE."""
        entry = self._known.get(id(condition))
        if entry is None:
            rows = np.flatnonzero(true_flags(condition.physical(self._num_rows)))
            entry = condition, SelectedRows(rows, self._groups)
            self._known[id(condition)] = entry
        return entry[1]


def _selected_groups(groups: Groups, rows: np.ndarray) -> Groups:
    """Return the groups of some rows. Groups without a selected row remain, so the numbers of groups do not change."""
    # With a single group, all ids are 0, so any slice of them has the ids of the selected rows.
    if groups.count == 1:
        return Groups(groups.compact_ids[: len(rows)], 1, groups.first_rows, np.array([len(rows)]))
    return Groups(groups.compact_ids[rows], groups.count, groups.first_rows)
