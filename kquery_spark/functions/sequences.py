"""``sequence``: arrays of numbers or days from a start to a stop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import THREE_COLUMNS
from kquery_spark.functions.registry import CallContext, EvalMode, Function, register
from kquery_spark.functions.strings import joint_mask, numbers
from kquery_spark.kernels.elements import check_size, listed
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

_ELEMENT_BYTES = 48  # of an element on its way


def _sequence(args: Sequence[Vector], context: CallContext) -> Data:
    """Numbers or days from a start to a stop; the step is 1 or -1 unless it is given."""
    n = context.num_rows
    joint = joint_mask(args, n)
    mask = np.zeros(n, np.bool_) if joint is None else np.asarray(joint, np.bool_)
    dates = context.dtype.value_type == t.DATE
    start, stop = (_plain(a, n) for a in args[:2])
    if len(args) > 2:
        step = _plain(args[2], n)
        if dates:
            if (step % DAY_MICROS != 0).any():
                raise Unsupported("Sequences of dates by parts of a day are not supported.")
            step = step // DAY_MICROS
    else:
        step = np.where(start <= stop, 1, -1)
    legal = np.where(step == 0, start == stop, (step > 0) == (start <= stop)) | (start == stop)
    if (~legal & ~mask).any():
        raise ExecutionError("IllegalArgumentException", "Illegal sequence boundaries.")
    if (np.abs(start.astype(np.float64)) + np.abs(stop.astype(np.float64)) > 2.0**62).any():
        raise Unsupported("Sequences of numbers near the end of bigint are not supported.")
    sizes = np.where(mask, 0, (stop - start) // np.where(step == 0, 1, step) + 1)
    reserve_rows(int(sizes.sum()), _ELEMENT_BYTES)
    check_size(int(sizes.sum()))
    rows = np.repeat(np.arange(n), sizes)
    order = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    values = start[rows] + order * step[rows]
    dtype = context.dtype.value_type
    child = pa.array(values.astype(np.int32)).view(t.DATE) if dates else pa.array(values).cast(dtype)
    return listed(child, np.arange(len(values)), sizes, mask, context.dtype)


def _plain(vector: Vector, length: int) -> Int64s:
    array = vector.array(length)
    if array.type == t.DATE:
        array = array.view(t.INT)
    elif pa.types.is_duration(array.type):
        array = array.view(t.LONG)
    return numbers(Vector(array.type, array), length)


def _sequence_type(types: Sequence[pa.DataType]) -> pa.DataType:
    first = types[0]
    if types[1] != first or not (t.is_integral(first) or first == t.DATE):
        raise PlanError(f"sequence cannot take {', '.join(map(t.spark_name, types))}")
    if len(types) > 2 and types[2] != (t.DAY_TIME if first == t.DATE else first):
        raise PlanError(f"sequence cannot take {', '.join(map(t.spark_name, types))}")
    return pa.list_(pa.field("element", first, False))


def _widest(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    whole = [x for x in types if t.is_integral(x)]
    widest = max(whole, key=lambda x: x.bit_width) if whole and len(whole) == len(types) else None
    return [widest] * len(types) if widest is not None else types


register(
    # the step of dates is an interval of days
    Function(
        "sequence",
        _sequence,
        _sequence_type,
        catalyst=("Sequence",),
        arity=(2, 3),
        raises=frozenset(EvalMode),
        coerce=_widest,
        calls=THREE_COLUMNS,
    ),
)
