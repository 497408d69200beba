"""max_by and min_by with a number: the values of so many rows in which another value is largest or smallest."""

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
from kquery_spark.kernels.compiled import HEAP_LOOPS
from kquery_spark.kernels.elements import list_array
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Accumulator, register_accumulator
from kquery_spark.physical.aggregates.lists import spread
from kquery_spark.physical.aggregates.percentiles import constant_state, merged_constant
from kquery_spark.physical.keys import Groups
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector, validity

_LOADED_ROWS = 2_000  # Python takes longer for more rows than loading the compiled loops does
_POSITIONS = pa.list_(t.INT)


@dataclass(frozen=True)
class _Heaps:
    """A heap for each group, in two arrays: rows by slot, and the slots as a heap."""

    bounds: Int64s  # where each begins and the last one ends
    sizes: Int64s
    slots: Int64s
    heaps: Int64s

    @classmethod
    def empty(cls, rows_of_each: Int64s, limit: int) -> _Heaps:
        """Heaps that hold up to ``limit`` of so many rows."""
        bounds = np.concatenate(([0], np.cumsum(np.minimum(rows_of_each, limit)))).astype(np.int64)
        items = np.zeros(bounds[-1], np.int64)
        return cls(bounds, np.zeros(len(rows_of_each), np.int64), items, items.copy())

    def insert(self, rows: Int64s, ids: Int64s, keys: Int64s) -> None:
        """Offer rows one after the other; ``ids`` and ``keys`` are those of all rows."""
        if len(rows) >= _LOADED_ROWS:
            HEAP_LOOPS.load()
        loops: Any = HEAP_LOOPS.kernels() or bounded_heaps
        ids, keys = (np.ascontiguousarray(column, np.int64) for column in (ids, keys))
        loops.insert(rows, ids, keys, self.bounds, self.sizes, self.slots, self.heaps)


class ExtremeRows(Accumulator):
    """The rows that Spark's heap holds, which is filled in the order of the rows, and then from other heaps.

    States: the values and what orders them in the order of the heap's slots, the slots as a heap, and the number of values.
    """

    def __init__(self, largest: bool) -> None:
        self._largest = largest

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (pa.list_(args[0]), pa.list_(args[1]), _POSITIONS, args[2])

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        value, by = (Vector(a.dtype, a.physical(context.num_rows)) for a in args[:2])
        limit = constant_state(args[2], groups)
        valid = validity(by.data)
        rows = np.arange(context.num_rows) if valid is None else np.flatnonzero(valid)
        held = _Heaps.empty(np.bincount(groups.ids[rows], minlength=groups.count), _number(limit))
        held.insert(rows, groups.ids, self._keys(by))
        # as Spark's second phase takes them over: from the root on
        owners = np.repeat(held.bounds[:-1], held.sizes)
        chosen = held.slots[owners + held.heaps]
        return self._states(
            value.plain(), by.plain(), chosen, np.arange(len(chosen)) - owners, held.sizes, limit
        )

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        limit = merged_constant(states[3], groups)
        values, parents = spread(states[0].data)
        order, _ = spread(states[1].data)
        positions = np.asarray(dk.as_int64(spread(states[2].data)[0]))
        ids = groups.ids[parents]
        held = _Heaps.empty(np.bincount(ids, minlength=groups.count), _number(limit))
        # the first state of each group is its heap, and the items of the others go into it
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
        values, ids = spread(states[0].data)
        order, _ = spread(states[1].data)
        keys = self._keys(Vector(states[1].dtype.value_type, order))
        rows = integer_order.lexicographic_order([ids, ~keys])
        sizes = np.bincount(ids, minlength=len(states[0].data))
        return list_array(values.take(pa.array(rows)), sizes, sizes == 0, context.dtype)

    def _keys(self, by: Vector) -> Int64s:
        """Integers of which the largest belong to the rows to hold."""
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
    """The constant of all groups; 0 where none has rows."""
    return pc.max(limit.data).as_py() or 0


register_accumulator("max_by_several", ExtremeRows(True))
register_accumulator("min_by_several", ExtremeRows(False))
