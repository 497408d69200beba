"""listagg: concatenates the strings of a group with a delimiter, in row order or in the order of sort keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels import integer_order
from kquery_spark.kernels.text import if_else
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Accumulator, register_accumulator
from kquery_spark.physical.aggregates.lists import flatten_lists, lists_of_groups
from kquery_spark.physical.aggregates.percentiles import constant_state, merged_constant
from kquery_spark.physical.grouping.groups import Groups
from kquery_spark.types.vector import Data, Int64s, Vector, validity


class ListAgg(Accumulator):
    """Concatenates strings or binaries that are not NULL, with the second argument as the delimiter.

    ordered: the first argument is a struct of the value and its sort keys, and the third has the direction of each key
    (``functions/aggregate/listagg.py``). States: the list of values or structs, and the constant arguments.
    """

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (pa.list_(args[0]), *args[1:])

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        data = args[0].filled(context.num_rows).plain()
        valid = validity(pc.struct_field(data, [0]) if self._ordered else data)
        rows = np.arange(len(data)) if valid is None else np.flatnonzero(valid)
        lists = lists_of_groups(data.take(pa.array(rows)), groups.ids[rows], groups.count)
        constants = [constant_state(a, groups) for a in args[1:]]
        return [Vector(pa.list_(args[0].dtype), lists), *constants]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        values, rows = flatten_lists(states[0].data)
        lists = lists_of_groups(values, groups.ids[rows], groups.count)
        return [Vector(states[0].dtype, lists), *(merged_constant(s, groups) for s in states[1:])]

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        lists, delimiters = states[0].data, states[1].plain()
        if self._ordered:
            items, ids = flatten_lists(lists)
            order = _order(items, ids, pc.max(states[2].plain()).as_py())
            lists = lists_of_groups(
                pc.struct_field(items, [0]).take(pa.array(order)), ids.take(order), len(lists)
            )
        joined = pc.binary_join(lists, delimiters)
        return if_else(pc.greater(pc.list_value_length(lists), 0), joined, pa.scalar(None, joined.type))


def _order(items: pa.Array, ids: Int64s, directions: str | None) -> Int64s:
    """Return the row numbers sorted by group and sort keys; ties stay in row order.

    directions: one word per key, ``A`` or ``D`` for ascending or descending, then ``F`` if NULLs come first.
    """
    columns = [ids]
    for i, direction in enumerate(directions.split(" ") if directions else ()):
        key = pc.struct_field(items, [i + 1])
        vector = Vector(key.type, key)
        rank = reduce.ordered_integers(vector)
        if rank is None:
            rank, _ = reduce.ranks(vector)
        if key.null_count:
            null = np.asarray(key.is_null().to_numpy(zero_copy_only=False))
            columns.append(np.where(null, 0 if direction[1] == "F" else 2, 1))
            rank = np.where(null, 0, rank)
        columns.append(~rank if direction[0] == "D" else rank)
    return integer_order.lexicographic_order(columns)


register_accumulator("listagg", ListAgg(ordered=False))
register_accumulator("listagg_ordered", ListAgg(ordered=True))
