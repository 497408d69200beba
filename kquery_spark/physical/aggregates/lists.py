"""Aggregates whose state is a list of values per group: collect_list, collect_set and approx_count_distinct."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from kquery_spark.functions.aggregate import hyperloglog
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import CallContext
from kquery_spark.kernels import integer_order
from kquery_spark.kernels.equal_rows import first_rows
from kquery_spark.kernels.ordered_bytes import normalize_zeros
from kquery_spark.physical.aggregates import reduce
from kquery_spark.physical.aggregates.accumulator import Accumulator, register_accumulator
from kquery_spark.physical.grouping.groups import Codes, Groups
from kquery_spark.physical.grouping.key_codes import encode, pack
from kquery_spark.types import names as t
from kquery_spark.types.sizes import check_elements
from kquery_spark.types.vector import Data, Int64s, Vector


def lists_of_groups(values: pa.Array, ids: Int64s, count: int) -> pa.Array:
    """Return one list per group, with its values in row order. ids: the group of each value."""
    sizes = np.bincount(ids, minlength=count)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    check_elements(int(offsets[-1]))
    order = integer_order.stable_order(ids)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values.take(pa.array(order)))


def flatten_lists(lists: pa.Array) -> tuple[pa.Array, Int64s]:
    """Return all values of a list column, and the row of each value. It is the inverse of ``lists_of_groups``."""
    return lists.flatten(), np.asarray(lists.value_parent_indices().to_numpy(), np.int64)


class Collect(Accumulator):
    """Collects the values that are not NULL, in row order.

    distinct: keep only the first of equal values, and replace -0.0 by 0.0.
    """

    def __init__(self, distinct: bool) -> None:
        self._distinct = distinct

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (pa.list_(args[0]),)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        data = args[0].filled(context.num_rows).plain()
        ids, rows = reduce.valid_rows(data, groups)
        if rows is not None:
            data = data.take(pa.array(rows))
        return [self._list_state(args[0].dtype, data, ids, groups.count)]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        values, rows = flatten_lists(states[0].data)
        return [self._list_state(states[0].dtype.value_type, values, groups.ids[rows], groups.count)]

    def _list_state(self, dtype: pa.DataType, values: pa.Array, ids: Int64s, count: int) -> Vector:
        if self._distinct and len(ids):
            codes = pack([Codes(ids, max(count, 1)), encode(Vector(dtype, values))], len(ids))
            first = first_rows(codes.widened().values)
            values, ids = normalize_zeros(values.take(pa.array(first))), ids[first]
        return Vector(pa.list_(dtype), lists_of_groups(values, ids, count))


class DistinctEstimate(Accumulator):
    """Spark's ``approx_count_distinct(x, error)``, a HyperLogLog++ sketch.

    The state is the list of the group's registers that are not empty, each with its rank, encoded in one integer.
    """

    @override
    def state_types(self, args: Sequence[pa.DataType], result: pa.DataType) -> tuple[pa.DataType, ...]:
        return (pa.list_(t.INT),)

    @override
    def update(self, args: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        error = (
            pc.max(args[1].array(context.num_rows)).as_py() if len(args) > 1 else hyperloglog.DEFAULT_ERROR
        )
        data = args[0].physical(context.num_rows)
        ids, rows = reduce.valid_rows(data, groups)
        if not len(ids):
            return [self._state(ids, ids, groups.count)]
        if rows is not None:
            data = data.take(pa.array(rows))
        registers = hyperloglog.encode_registers(
            Vector(args[0].dtype, data), len(ids), hyperloglog.precision_for_error(error)
        )
        return [self._state(ids, registers, groups.count)]

    @override
    def merge(self, states: Sequence[Vector], groups: Groups, context: CallContext) -> list[Vector]:
        registers, rows = flatten_lists(states[0].data)
        return [self._state(groups.ids[rows], np.asarray(dk.as_int64(registers)), groups.count)]

    def _state(self, ids: Int64s, registers: Int64s, count: int) -> Vector:
        ids, registers = hyperloglog.highest_ranks(ids, registers, count)
        return Vector(pa.list_(t.INT), lists_of_groups(pa.array(registers.astype(np.int32)), ids, count))

    @override
    def finish(self, states: Sequence[Vector], context: CallContext) -> Data:
        registers, ids = flatten_lists(states[0].data)
        return pa.array(hyperloglog.estimates(ids, np.asarray(dk.as_int64(registers)), len(states[0].data)))


register_accumulator("collect_list", Collect(distinct=False))
register_accumulator("collect_set", Collect(distinct=True))
register_accumulator("approx_count_distinct", DistinctEstimate())
