"""``max_by(x, y, k)`` and ``min_by(x, y, k)``: the values of x in the k rows with the largest or smallest y.

Spark holds these rows in a bounded heap. Which of several rows with equal y are in the result depends on the history of the
heap, so the engine performs exactly the same heap operations in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels import bounded_heaps, integer_order
from kquery_spark.kernels.compiled import AGGREGATE_LOOPS
from kquery_spark.kernels.elements import list_array
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Accumulator, register_accumulator
from kquery_spark.physical.aggregates.lists import flatten_lists
from kquery_spark.physical.aggregates.percentiles import constant_state, merged_constant
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector, validity

_LOADED_ROWS = 2_000  # for more rows, loading the compiled loops takes less time than the loops in Python
_POSITIONS = pa.list_(t.INT)


@dataclass(frozen=True)
class _Heaps:
    """One bounded heap per group. The heaps of all groups are stored one after another in two arrays.

    Slot ``i`` of group ``g`` is at ``bounds[g] + i``. ``slots`` has the row of each slot, and ``heaps`` has the numbers of
    the slots in heap order, the root first. Moving an item in the heap moves its slot number, not its row.
    """

    bounds: Int64s  # where the heap of each group begins, and where the last one ends
    sizes: Int64s
    slots: Int64s
    heaps: Int64s

    @classmethod
    def empty(cls, rows_of_each: Int64s, limit: int) -> _Heaps:
        """Return empty heaps of at most ``limit`` rows. rows_of_each: the number of rows of each group."""
        bounds = np.concatenate(([0], np.cumsum(np.minimum(rows_of_each, limit)))).astype(np.int64)
        items = np.zeros(bounds[-1], np.int64)
        return cls(bounds, np.zeros(len(rows_of_each), np.int64), items, items.copy())

    def insert(self, rows: Int64s, ids: Int64s, keys: Int64s) -> None:
        """Insert rows one after another. ids, keys: the group and the sort key of each row, indexed by row."""
        if len(rows) >= _LOADED_ROWS:
            AGGREGATE_LOOPS.load()
        loops: Any = AGGREGATE_LOOPS.kernels() or bounded_heaps
        ids, keys = (np.ascontiguousarray(column, np.int64) for column in (ids, keys))
        loops.insert(rows, ids, keys, self.bounds, self.sizes, self.slots, self.heaps)


class ExtremeRows(Accumulator):
    """Fills Spark's heap in row order, and merges it with the heaps of other tasks.

    States: the values and their sort keys in slot order, the heap of slot numbers, and k.
    """

    def __init__(self, largest: bool) -> None:
        self._largest = largest

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (pa.list_(args[0]), pa.list_(args[1]), _POSITIONS, args[2])

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        value, by = (a.filled(context.num_rows) for a in args[:2])
        limit = constant_state(args[2], groups)
        valid = validity(by.data)
        rows = np.arange(context.num_rows) if valid is None else np.flatnonzero(valid)
        held = _Heaps.empty(np.bincount(groups.ids[rows], minlength=groups.count), _number(limit))
        held.insert(rows, groups.ids, self._keys(by))
        # Spark's second phase receives the items in heap order, from the root on, and numbers their slots anew.
        owners = np.repeat(held.bounds[:-1], held.sizes)
        chosen = held.slots[owners + held.heaps]
        return self._states(
            value.plain(), by.plain(), chosen, np.arange(len(chosen)) - owners, held.sizes, limit
        )

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        limit = merged_constant(states[3], groups)
        values, parents = flatten_lists(states[0].data)
        order, _ = flatten_lists(states[1].data)
        positions = np.asarray(dk.as_int64(flatten_lists(states[2].data)[0]))
        ids = groups.ids[parents]
        held = _Heaps.empty(np.bincount(ids, minlength=groups.count), _number(limit))
        # The first state of each group that is not empty becomes its heap as it is. The items of the other states are then
        # inserted in heap order, as in Spark. ``first`` has the row of this state for each group: rows are assigned in
        # reverse, so that the last assignment, that of the first row, remains.
        lengths = np.bincount(parents, minlength=len(groups.ids))
        begins = np.cumsum(lengths) - lengths
        filled = np.flatnonzero(lengths)
        first = np.full(groups.count, -1, np.int64)
        first[groups.ids[filled][::-1]] = filled[::-1]
        is_first = first[ids] == parents
        items = np.flatnonzero(is_first)
        places = held.bounds[ids[items]] + items - begins[parents[items]]
        held.slots[places], held.heaps[places] = items, positions[items]
        held.sizes[:] = np.bincount(ids[items], minlength=groups.count)
        others = np.flatnonzero(~is_first)
        keys = self._keys(Vector(states[1].dtype.value_type, order))
        held.insert(begins[parents[others]] + positions[others], ids, keys)
        return self._states(values, order, held.slots, held.heaps, held.sizes, limit)

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        values, ids = flatten_lists(states[0].data)
        order, _ = flatten_lists(states[1].data)
        keys = self._keys(Vector(states[1].dtype.value_type, order))
        rows = integer_order.lexicographic_order([ids, ~keys])
        sizes = np.bincount(ids, minlength=len(states[0].data))
        return list_array(values.take(pa.array(rows)), sizes, sizes == 0, context.dtype)

    def _keys(self, by: Vector) -> Int64s:
        """Return integers in the order of the sort key, such that the rows to keep have the largest ones."""
        keys = reduce.ordered_integers(by)
        if keys is None:
            keys, _ = reduce.ranks(by)
        return keys if self._largest else ~keys

    def _states(
        self, values: pa.Array, order: pa.Array, rows: Int64s, positions: Int64s, sizes: Int64s, limit: Vector
    ) -> list[Vector]:
        index = pa.array(rows)
        columns = (values.take(index), order.take(index), pa.array(positions.astype(np.int32)))
        present = np.zeros(len(sizes), np.bool_)
        lists = [Vector(pa.list_(c.type), list_array(c, sizes, present, pa.list_(c.type))) for c in columns]
        return [*lists, limit]


def _number(limit: Vector) -> int:
    """Return k, which is the same for all groups; 0 if no group has rows."""
    return pc.max(limit.data).as_py() or 0


register_accumulator("max_by_several", ExtremeRows(True))
register_accumulator("min_by_several", ExtremeRows(False))
