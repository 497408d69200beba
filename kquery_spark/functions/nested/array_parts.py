"""ARRAY_INSERT, ARRAY_APPEND, ARRAY_PREPEND, ARRAY_COMPACT and ARRAYS_ZIP."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import ALL_COLUMNS, TWO_COLUMNS
from kquery_spark.functions.core.arguments import dense_mask, numbers
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    CatalystParameters,
    Function,
    Nullability,
    TypeRule,
    depends_on_values,
    register,
)
from kquery_spark.kernels.elements import (
    Mask,
    cast_nullability,
    check_size,
    coerce_to_element,
    element_places,
    elements,
    gather_lists,
    is_array,
    list_array,
)
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.vector import Data, Int64s, Vector

_ELEMENT_BYTES = 48  # estimated memory per element of intermediate results


def _insert_items(
    array: pa.Array, position: Int64s, item: pa.Array, nulls: Mask, dtype: pa.DataType
) -> pa.Array:
    """Insert an item at a 1-based position, or from the end if negative; NULLs fill the gap to a position outside."""
    items = elements(array)
    old = np.where(nulls, 0, items.sizes)
    from_left = np.where(position < 0, position + old + 1, position - 1)
    sizes = np.where(nulls, 0, np.maximum(old + 1, np.where(from_left < 0, -position, from_left + 1)))
    reserve_rows(int(sizes.sum()), _ELEMENT_BYTES)
    check_size(int(sizes.sum()))
    starts = np.cumsum(sizes) - sizes
    places = np.full(int(sizes.sum()), -1, np.int64)
    kept = np.flatnonzero(~nulls[items.rows])
    rows, order = items.rows[kept], items.order[kept]
    # a negative position before the first element: the item comes first, the old elements last, NULLs in between
    shift = np.where(from_left < 0, sizes - old, 0)[rows]
    order = np.where(shift > 0, order + shift, order + (order >= from_left[rows]))
    places[starts[rows] + order] = kept
    present = np.flatnonzero(~nulls)
    places[starts[present] + np.maximum(from_left[present], 0)] = len(items.rows) + present
    values = pa.concat_arrays(
        [cast_nullability(items.values, dtype.value_type), cast_nullability(item, dtype.value_type)]
    )
    values = values.take(pa.array(np.maximum(places, 0), mask=places < 0))
    return list_array(values, sizes, nulls, dtype)


def _insert(args: Sequence[Vector], context: CallContext) -> Data:
    """``array_insert(array, position, item)``."""
    n = context.num_rows
    position, nulls = numbers(args[1], n), dense_mask(args[:2], n)
    if ((position == 0) & ~nulls).any():
        raise ExecutionError(
            "INVALID_INDEX_OF_ZERO", "The index 0 is invalid. An index shall be either < 0 or > 0."
        )
    return _insert_items(args[0].array(n), position, args[2].array(n), nulls, context.dtype)


def _append_or_prepend(position: int) -> Callable[[Sequence[Vector], CallContext], Data]:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        n = context.num_rows
        places = np.full(n, position, np.int64)
        return _insert_items(
            args[0].array(n), places, args[1].array(n), dense_mask(args[:1], n), context.dtype
        )

    return run


def _compact(args: Sequence[Vector], context: CallContext) -> Data:
    """Remove the NULLs of arrays."""
    items = elements(args[0].array(context.num_rows))
    present = np.flatnonzero(np.asarray(items.values.is_valid().to_numpy(zero_copy_only=False), np.bool_))
    sizes = np.bincount(items.rows[present], minlength=context.num_rows)
    return gather_lists(items.values, present, sizes, items.nulls, context.dtype)


def _zip(args: Sequence[Vector], context: CallContext) -> Data:
    """``arrays_zip``: one struct per position of the arrays. The arguments are alternately names and arrays."""
    n, arrays = context.num_rows, args[1::2]
    nulls = dense_mask(arrays, n)
    sides = [elements(a.array(n)) for a in arrays]
    sizes = np.where(nulls, 0, np.max([side.sizes for side in sides], axis=0))
    rows, order = element_places(sizes)
    fields = list(context.dtype.value_type)
    columns = [
        cast_nullability(side.at(rows, order), field.type) for side, field in zip(sides, fields, strict=True)
    ]
    structs = pa.StructArray.from_arrays(columns, fields=fields)
    return list_array(structs, sizes, nulls, context.dtype)


# --- types ----------------------------------------------------------------------------------------


def _insert_type(name: str, item: int) -> TypeRule:
    """A type rule: the array's type with nullable elements, if the argument at ``item`` has the element type."""

    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        array, value = types[0], types[item]
        if not is_array(array) or t.spark_name(value) not in ("void", t.spark_name(array.value_type)):
            raise PlanError(
                f"[DATATYPE_MISMATCH.ARRAY_FUNCTION_DIFF_TYPES] {name} cannot take "
                f"{', '.join(map(t.spark_name, types))}"
            )
        if item == 2 and types[1] != t.INT:
            raise PlanError(
                f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] the position of {name} cannot be "
                f"{t.spark_name(types[1])}"
            )
        return pa.list_(pa.field("element", t.nullable_within(array.value_type)))

    return rule


def _coerce_insert(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    array, item = coerce_to_element([types[0], types[2]])
    return [array, types[1], item]


def _compact_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not is_array(types[0]) or types[0].value_type == t.NULL:
        raise PlanError(f"array_compact cannot take {t.spark_name(types[0])}")
    return pa.list_(pa.field("element", types[0].value_type, False))


def _zip_type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    names = values[::2]
    if len(types) % 2 or not all(isinstance(name, str) for name in names):
        raise PlanError("arrays_zip takes pairs of a name and an array")
    if not all(map(is_array, types[1::2])):
        raise PlanError(
            f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] arrays_zip takes arrays, not "
            f"{', '.join(map(t.spark_name, types[1::2]))}"
        )
    if len(set(names)) < len(names):
        raise Unsupported("arrays_zip of fields of one name is not supported")
    pairs = zip(names, types[1::2], strict=True)
    fields = [pa.field(str(name), dtype.value_type) for name, dtype in pairs]
    return pa.list_(pa.field("element", pa.struct(fields), False))


register(
    Function(
        "array_insert",
        _insert,
        _insert_type("array_insert", 2),
        catalyst=("ArrayInsert",),
        parameters=CatalystParameters(fixed=(("legacyNegativeIndex", False),)),
        arity=(3, 3),
        nullable=Nullability.FIRST_TWO_ARGUMENTS,
        raises=ALWAYS_RAISES,
        coerce=_coerce_insert,
        calls=TWO_COLUMNS,
        evaluates=(0, 1, 2),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    *(
        Function(
            name,
            _append_or_prepend(position),
            _insert_type(name, 1),
            catalyst=(cls,),
            arity=(2, 2),
            nullable=Nullability.FIRST_ARGUMENT,
            coerce=coerce_to_element,
            invalid_utf8=InvalidUtf8.BYTES,
        )
        for name, position, cls in (("array_append", -1, "ArrayAppend"), ("array_prepend", 1, "ArrayPrepend"))
    ),
    # in Catalyst, it is a higher-order function
    Function("array_compact", _compact, _compact_type, foldable=False, invalid_utf8=InvalidUtf8.BYTES),
    Function(
        "arrays_zip",
        _zip,
        depends_on_values,
        catalyst=("ArraysZip",),
        arity=(2, None),
        result_of=_zip_type,
        calls=ALL_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
