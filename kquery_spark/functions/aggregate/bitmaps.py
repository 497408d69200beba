"""Functions and aggregates of bitmaps with 32,768 bits: bucket numbers, bit positions, bit counts, build and combine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.functions.aggregate_registry import AggregateFunction, register_aggregate
from kquery_spark.functions.core.arguments import joint_mask, numbers
from kquery_spark.functions.math.bits import ones_of_bytes
from kquery_spark.functions.registry import CallContext, Function, JavaMethod, accept, cast_to, register
from kquery_spark.kernels.text import layout
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_BITS = 32_768
_OWNER = "BitmapExpressionUtils"


def _bucket_number(args: Sequence[Vector], context: CallContext) -> Data:
    value = numbers(args[0], context.num_rows)
    above = 1 + (value - (value > 0)) // _BITS
    below = value // _BITS + (value % _BITS != 0)  # rounds toward zero
    return pa.array(np.where(value > 0, above, below), mask=joint_mask(args, context.num_rows))


def _bit_position(args: Sequence[Vector], context: CallContext) -> Data:
    value = numbers(args[0], context.num_rows)
    return pa.array(np.where(value > 0, value - 1, -value) % _BITS, mask=joint_mask(args, context.num_rows))


def _bit_count(args: Sequence[Vector], context: CallContext) -> Data:
    """The number of ones in each binary value, from cumulative counts: ones before its end minus ones before its start."""
    array = args[0].array(context.num_rows)
    offsets, raw = layout(array)
    counts = np.zeros(len(raw) + 1, np.int64)
    np.cumsum(ones_of_bytes(raw), out=counts[1:])
    return pa.array(counts[offsets[1:]] - counts[offsets[:-1]], mask=joint_mask(args, context.num_rows))


register(
    Function(
        "bitmap_bucket_number",
        _bucket_number,
        accept(t.LONG, t.LONG),
        java=(JavaMethod(_OWNER, "bitmapBucketNumber"),),
        coerce=cast_to(t.LONG),
    ),
    Function(
        "bitmap_bit_position",
        _bit_position,
        accept(t.LONG, t.LONG),
        java=(JavaMethod(_OWNER, "bitmapBitPosition"),),
        coerce=cast_to(t.LONG),
    ),
    Function(
        "bitmap_count",
        _bit_count,
        accept(t.LONG, t.BINARY),
        java=(JavaMethod(_OWNER, "bitmapCount"),),
        coerce=cast_to(t.BINARY),
    ),
)


def _bitmap(name: str, catalyst: str, argument: pa.DataType) -> AggregateFunction:
    return AggregateFunction(
        name,
        accept(t.BINARY, argument),
        name,
        (catalyst,),
        nullable=False,
        coerce=cast_to(argument),
        duplicate_free=True,
        over_windows=False,
        raises=argument == t.LONG,
    )


register_aggregate(
    _bitmap("bitmap_construct_agg", "BitmapConstructAgg", t.LONG),
    _bitmap("bitmap_or_agg", "BitmapOrAgg", t.BINARY),
    _bitmap("bitmap_and_agg", "BitmapAndAgg", t.BINARY),
)
