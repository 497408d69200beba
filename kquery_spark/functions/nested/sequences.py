"""``sequence``: arrays of numbers, dates or timestamps from a start to a stop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import THREE_COLUMNS
from kquery_spark.functions.core.arguments import dense_mask, numbers
from kquery_spark.functions.registry import ALWAYS_RAISES, CallContext, Function, register, register_internal
from kquery_spark.kernels import civil
from kquery_spark.kernels.elements import Mask, check_size, element_places, list_array
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

_ELEMENT_BYTES = 48  # estimated memory per element of intermediate results


def _sequence(args: Sequence[Vector], context: CallContext) -> Data:
    """Build sequences of numbers, dates or timestamps; the default step is 1, or -1 if the stop is before the start."""
    n = context.num_rows
    mask = dense_mask(args, n)
    dates = context.dtype.value_type == t.DATE
    start, stop = (_plain(a, n) for a in args[:2])
    if len(args) > 2:
        step = _plain(args[2], n)
        if dates:
            if (step % DAY_MICROS != 0).any():
                raise Unsupported("sequences of dates by parts of a day are not supported")
            step = step // DAY_MICROS
        elif pa.types.is_timestamp(context.dtype.value_type) and (np.abs(step) >= DAY_MICROS).any():
            raise Unsupported("sequences of times by days, which may be longer or shorter, are not supported")
    else:
        step = np.where(start <= stop, 1, -1)
    legal = np.where(step == 0, start == stop, (step > 0) == (start <= stop)) | (start == stop)
    _check_boundaries(legal | mask)
    if (np.abs(start.astype(np.float64)) + np.abs(stop.astype(np.float64)) > 2.0**62).any():
        raise Unsupported("sequences of numbers near the end of bigint are not supported")
    sizes = np.where(mask, 0, (stop - start) // np.where(step == 0, 1, step) + 1)
    rows, order = _element_places(sizes)
    values = start[rows] + order * step[rows]
    dtype = context.dtype.value_type
    if pa.types.is_timestamp(dtype):
        child = pa.array(values).view(dtype)
    else:
        child = pa.array(values.astype(np.int32)).view(t.DATE) if dates else pa.array(values).cast(dtype)
    return list_array(child, sizes, mask, context.dtype)


def _by_months(args: Sequence[Vector], context: CallContext) -> Data:
    """Build sequences of dates with a constant step of months; each date is computed from the start, as in Spark."""
    n = context.num_rows
    mask = dense_mask(args, n)
    start, stop = (_plain(a, n) for a in args[:2])
    step = int(args[2].data.as_py())
    _check_boundaries(((stop >= start) if step > 0 else (stop <= start)) | mask)
    steps = np.where(mask, 0, (civil.month_numbers(stop) - civil.month_numbers(start)) // step)
    last = civil.add_months(start, steps * step)
    steps -= (last > stop) if step > 0 else (last < stop)  # a day of the last month that is past the stop
    sizes = np.where(mask, 0, steps + 1)
    rows, order = _element_places(sizes)
    days = civil.add_months(start[rows], order * step)
    child = pa.array(days.astype(np.int32)).view(t.DATE)
    return list_array(child, sizes, mask, context.dtype)


def _check_boundaries(legal: Mask) -> None:
    if not legal.all():
        raise ExecutionError("IllegalArgumentException", "Illegal sequence boundaries.")


def _element_places(sizes: Int64s) -> tuple[Int64s, Int64s]:
    """The row of each element, and its position in the row's array; raises Unsupported for too many elements."""
    total = int(sizes.sum())
    reserve_rows(total, _ELEMENT_BYTES, check=lambda: check_size(total))
    return element_places(sizes)


def _plain(vector: Vector, length: int) -> Int64s:
    array = vector.array(length)
    if array.type == t.DATE:
        array = array.view(t.INT)
    elif pa.types.is_duration(array.type) or pa.types.is_timestamp(array.type):
        array = array.view(t.LONG)
    return numbers(Vector(array.type, array), length)


def _sequence_type(types: Sequence[pa.DataType]) -> pa.DataType:
    first = types[0]
    by_interval = first == t.DATE or (pa.types.is_timestamp(first) and len(types) > 2)
    if types[1] != first or not (t.is_integral(first) or by_interval):
        raise PlanError(f"sequence cannot take {', '.join(map(t.spark_name, types))}")
    if len(types) > 2 and types[2] != (t.DAY_TIME if by_interval else first):
        raise PlanError(f"sequence cannot take {', '.join(map(t.spark_name, types))}")
    return pa.list_(pa.field("element", first, False))


def _months_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if list(types) != [t.DATE, t.DATE, t.INT]:
        raise PlanError(f"sequence by months cannot take {', '.join(map(t.spark_name, types))}")
    return pa.list_(pa.field("element", t.DATE, False))


def _check_months(values: Sequence[object]) -> None:
    if not isinstance(values[2], int) or not values[2]:
        raise Unsupported("a sequence by months that are not a constant, or that are 0, is not supported")


def _widest(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    whole = [x for x in types if t.is_integral(x)]
    widest = max(whole, key=lambda x: x.bit_width) if whole and len(whole) == len(types) else None
    return [widest] * len(types) if widest is not None else types


register(
    # the step of dates is an interval of days, that of timestamps one of microseconds
    Function(
        "sequence",
        _sequence,
        _sequence_type,
        catalyst=("Sequence",),
        arity=(2, 3),
        raises=ALWAYS_RAISES,
        coerce=_widest,
        calls=THREE_COLUMNS,
    ),
)
register_internal(
    Function(
        "sequence_by_months",
        _by_months,
        _months_type,
        arity=(3, 3),
        raises=ALWAYS_RAISES,
        check_values=_check_months,
    ),
)
