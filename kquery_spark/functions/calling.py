"""Calls the kernel of a function on vectors, within the memory limit of the run."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import BatchTooLarge, ExecutionError, Unsupported
from kquery_spark.functions.evaluation import CallContext
from kquery_spark.functions.invalid_utf8 import call_with_malformed_strings, has_malformed_strings
from kquery_spark.functions.nullability import Nullability
from kquery_spark.functions.registry import Function
from kquery_spark.run_control import bounding_control
from kquery_spark.types.sizes import raise_if_too_large, reserve_gather, reserve_repeats
from kquery_spark.types.vector import Data, Vector, decode, gather


def call(entry: Function, args: Sequence[Vector], context: CallContext) -> Vector:
    """Call a function in the cheapest correct way.

    1. If all arguments are literals, the kernel runs on one row.
    2. If the only column is dictionary-encoded and NULL propagates, the kernel runs on the dictionary's values. An error may
       come from an entry that no row refers to, so in this case the kernel runs again on the rows.
    3. Otherwise the kernel runs on all rows.
    """
    if args and all(a.is_scalar for a in args):
        # the first argument becomes a column of one row, so that kernels always have a column, and options are scalars
        rows = [Vector(args[0].dtype, _one_row(args[0])), *(Vector(a.dtype, a.plain()) for a in args[1:])]
        data = _kernel(entry, rows, CallContext(context.dtype, context.mode, context.tz, 1))
        return Vector(context.dtype, data if isinstance(data, pa.Scalar) else data[0])
    if not entry.encoded and entry.nullable is Nullability.ANY_ARGUMENT:
        lifted = _lift(entry, args, context)
        if lifted is not None:
            return Vector(context.dtype, lifted)
    return Vector(context.dtype, _kernel(entry, args, context))


def _one_row(vector: Vector) -> pa.Array:
    return pa.repeat(vector.plain(), 1) if vector.data.is_valid else pa.nulls(1, vector.dtype)


def _kernel(entry: Function, args: Sequence[Vector], context: CallContext) -> Data:
    if not entry.encoded:
        args = [Vector(a.dtype, a.plain()) for a in args]
    if has_malformed_strings(entry.invalid_utf8, args):
        rule, dtype = entry.invalid_utf8, context.dtype
        return call_with_malformed_strings(
            entry.name, rule, lambda valid: _bounded(entry, valid, context), args, dtype, context.num_rows
        )
    return _bounded(entry, args, context)


def _bounded(entry: Function, args: Sequence[Vector], context: CallContext) -> Data:
    """Run the kernel within the memory limit of the run."""
    control = bounding_control()
    if control is None:
        return _checked(entry, args, context)
    if not _is_fixed_width(context.dtype):
        reserve_repeats([a.data for a in args], context.num_rows)
    data = _checked(entry, args, context)
    if isinstance(data, pa.Array):
        control.reserve(data.nbytes)  # nested calls may multiply the size, so each result is counted
    return data


def _checked(entry: Function, args: Sequence[Vector], context: CallContext) -> Data:
    """Run the kernel. Raises BatchTooLarge, with the name of the function, for a result of more than 2 GiB."""
    try:
        data = entry.kernel(args, context)
    except pa.ArrowException as error:
        raise_if_too_large(error, entry.name)
        raise
    # pa.array makes several chunks of Python strings that do not fit into one.
    if isinstance(data, pa.ChunkedArray):
        raise BatchTooLarge(f"{entry.name} with a result of more than 2 GiB in a batch is not supported")
    return data


def _is_fixed_width(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(dtype) or pa.types.is_decimal(dtype) or pa.types.is_null(dtype))


def _lift(entry: Function, args: Sequence[Vector], context: CallContext) -> Data | None:
    """Run the kernel on the values of the only column's dictionary, and look up the result of each row.

    Returns None if this is impossible or not cheaper: no column qualifies, its dictionary is longer than the column
    or contains NULL, or the kernel raised an error, perhaps for an entry that no row refers to.
    """
    columns = [i for i, a in enumerate(args) if not a.is_scalar]
    if len(columns) != 1 or not args[columns[0]].is_dictionary:
        return None
    column = args[columns[0]].data
    if len(column.dictionary) > len(column) or column.dictionary.null_count:
        return None
    lifted = list(args)
    lifted[columns[0]] = Vector(args[columns[0]].dtype, column.dictionary)
    inner = CallContext(context.dtype, context.mode, context.tz, len(column.dictionary))
    try:
        data = _kernel(entry, lifted, inner)
    except (ExecutionError, Unsupported):
        return None
    if isinstance(data, pa.Scalar):
        return None
    if pa.types.is_dictionary(data.type):
        data = decode(data)
    if pa.types.is_string(data.type):
        if data.null_count:
            reserve_gather([data], column.indices)
        return (
            pa.DictionaryArray.from_arrays(column.indices, data)
            if not data.null_count
            else data.take(column.indices)
        )
    return gather(data, column.indices)
