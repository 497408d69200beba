"""Access to fields, elements and values of structs, arrays and maps; sizes; and constructors of structs and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError
from kquery_spark.functions.call_form import ALL_COLUMNS
from kquery_spark.functions.core.arguments import joint_mask, numbers
from kquery_spark.functions.core.comparison import coerce_comparison, compare
from kquery_spark.functions.core.conditional import common_argument_type
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    ANSI_RAISES,
    CallContext,
    CatalystParameters,
    Constructor,
    EvalMode,
    Function,
    Nullability,
    Simplification,
    depends_on_values,
    register,
    register_internal,
)
from kquery_spark.kernels.elements import (
    bounds,
    cast_nullability,
    coerce_to_element,
    elements,
    is_array,
    list_array,
    unify_types,
)
from kquery_spark.kernels.ordered_bytes import can_order
from kquery_spark.kernels.text import null_mask
from kquery_spark.types import names as t
from kquery_spark.types.sizes import check_elements
from kquery_spark.types.vector import Data, Int64s, Vector

# --- structs --------------------------------------------------------------------------------------


def _field_type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    dtype, index = types[0], values[1]
    if not pa.types.is_struct(dtype) or not isinstance(index, int):
        raise PlanError(f"{t.spark_name(dtype)} has no field {index}")
    return dtype.field(index).type


def _get_field(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.struct_field(args[0].array(context.num_rows), [args[1].data.as_py()])


def _field_of_each_type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    dtype, index = types[0], values[1]
    if not is_array(dtype) or not pa.types.is_struct(dtype.value_type) or not isinstance(index, int):
        raise PlanError(f"the elements of {t.spark_name(dtype)} have no field {index}")
    field = dtype.value_type.field(index)
    return pa.list_(pa.field("element", field.type, dtype.value_field.nullable or field.nullable))


def _field_of_each(args: Sequence[Vector], context: CallContext) -> Data:
    """Extract one field of each struct in an array; NULL for a struct that is NULL."""
    items = elements(args[0].array(context.num_rows))
    values = pc.struct_field(items.values, [args[1].data.as_py()])
    return list_array(values, items.sizes, items.nulls, context.dtype)


def _struct_type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    names = values[::2]
    if len(types) % 2 or not all(isinstance(name, str) for name in names):
        raise PlanError("named_struct takes pairs of a name and a value")
    return pa.struct([pa.field(str(name), dtype) for name, dtype in zip(names, types[1::2], strict=True)])


def _named_struct(args: Sequence[Vector], context: CallContext) -> Data:
    fields = list(context.dtype)
    parts = [
        cast_nullability(a.array(context.num_rows), f.type) for a, f in zip(args[1::2], fields, strict=True)
    ]
    return pa.StructArray.from_arrays(parts, fields=fields)


# --- arrays ---------------------------------------------------------------------------------------


def _element_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not is_array(types[0]) or not t.is_integral(types[1]):
        raise PlanError(f"{t.spark_name(types[0])} is not an array")
    return types[0].value_type


def _take(array: pa.Array, index: Int64s, missing: Any) -> pa.Array:
    begins, _ = bounds(array)
    return array.values.take(pa.array(np.where(missing, 0, begins + index), mask=missing))


def _get_item(args: Sequence[Vector], context: CallContext) -> Data:
    """``a[i]``, counted from 0; an index outside of the array is an error in ANSI mode. GET is the same in TRY mode."""
    n = context.num_rows
    array, index = args[0].array(n), numbers(args[1], n)
    begins, ends = bounds(array)
    mask = joint_mask(args, n)
    outside = (index < 0) | (index >= ends - begins)
    bad = outside if mask is None else outside & ~mask
    if bad.any() and context.mode is EvalMode.ANSI:
        raise ExecutionError("INVALID_ARRAY_INDEX", "The index is out of bounds of the array.")
    return _take(array, index, outside if mask is None else outside | mask)


def _element_at_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if pa.types.is_map(types[0]):
        return _value_type(types)
    return _element_type(types)


def _element_at(args: Sequence[Vector], context: CallContext) -> Data:
    """``element_at(array, i)``, counted from 1, or from the end if negative; ``element_at(map, key)``."""
    if pa.types.is_map(args[0].dtype):
        return _map_value(args, context)
    n = context.num_rows
    array, index = args[0].array(n), numbers(args[1], n)
    begins, ends = bounds(array)
    size = ends - begins
    mask = joint_mask(args, n)
    present = np.ones(n, np.bool_) if mask is None else ~mask
    outside = np.abs(index) > size
    if (present & ~outside & (index == 0)).any():
        raise ExecutionError(
            "INVALID_INDEX_OF_ZERO", "The index 0 is invalid. An index shall be either < 0 or > 0."
        )
    if (present & outside).any() and context.mode is EvalMode.ANSI:
        raise ExecutionError("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "The index is out of bounds of the array.")
    return _take(array, np.where(index > 0, index - 1, size + index), outside | ~present)


def _size(args: Sequence[Vector], context: CallContext) -> Data:
    array = args[0].array(context.num_rows)
    begins, ends = bounds(array)
    return pa.array((ends - begins).astype(np.int32), mask=null_mask(array))


def _size_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not (pa.types.is_list(types[0]) or pa.types.is_map(types[0])):
        raise PlanError(f"{t.spark_name(types[0])} has no size")
    return t.INT


def _contains_type(types: Sequence[pa.DataType]) -> pa.DataType:
    same = is_array(types[0]) and t.spark_name(types[0].value_type) == t.spark_name(types[1])
    if not same or not can_order(types[1]):
        raise PlanError(f"{t.spark_name(types[0])} cannot contain {t.spark_name(types[1])}")
    return t.BOOL


def _hits(array: pa.Array, child: pa.Array, needle: Vector, length: int) -> tuple[Int64s, Int64s, Any]:
    """The positions of all elements, the row of each, and whether it equals the row's ``needle`` (NULL if unknown)."""
    begins, ends = bounds(array)
    sizes = ends - begins
    rows = np.repeat(np.arange(length), sizes)
    starts = np.cumsum(sizes) - sizes
    positions = np.repeat(begins - starts, sizes) + np.arange(int(sizes.sum()))
    values = child.take(pa.array(positions)), needle.array(length).take(pa.array(rows))
    left, right = (Vector(side.type, side) for side in unify_types(*values))
    context = CallContext(t.BOOL, EvalMode.ANSI, "UTC", len(positions))
    return positions, rows, compare("eq", left, right, context)


def _array_contains(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    array = args[0].array(n)
    _, rows, equal = _hits(array, array.values, args[1], n)
    contained, unknown = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    contained[rows[np.asarray(pc.fill_null(equal, False).to_numpy(zero_copy_only=False))]] = True
    unknown[rows[np.asarray(pc.is_null(equal).to_numpy(zero_copy_only=False))]] = True
    mask = joint_mask(args, n)
    unknown &= ~contained
    return pa.array(contained, mask=unknown if mask is None else unknown | mask)


def _array_type(types: Sequence[pa.DataType]) -> pa.DataType:
    return pa.list_(common_argument_type(types) if types else t.NULL)


def _coerce_to_common_type(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return coerce_comparison(types) if types else types


def _array(args: Sequence[Vector], context: CallContext) -> Data:
    n, width = context.num_rows, len(args)
    check_elements(n * width)
    element = context.dtype.value_type
    columns = [a.array(n) if a.dtype != t.NULL else pa.nulls(n, element) for a in args]
    if t.is_nested(element):  # the types may differ in the nullability of nested fields
        columns = [cast_nullability(column, element) for column in columns]
    stacked = pa.concat_arrays(columns) if columns else pa.nulls(0, element)
    order = np.arange(n * width).reshape(width, n).T.reshape(-1) if width else np.zeros(0, np.int64)
    offsets = pa.array(np.arange(n + 1, dtype=np.int32) * width)
    return pa.ListArray.from_arrays(offsets, stacked.take(pa.array(order)), type=context.dtype)


# --- maps -----------------------------------------------------------------------------------------


def _value_type(types: Sequence[pa.DataType]) -> pa.DataType:
    same = pa.types.is_map(types[0]) and t.spark_name(types[0].key_type) == t.spark_name(types[1])
    if not same or not can_order(types[1]):
        raise PlanError(f"{t.spark_name(types[0])} has no key of type {t.spark_name(types[1])}")
    return types[0].item_type


def _map_value(args: Sequence[Vector], context: CallContext) -> Data:
    """The value of the first entry with the key; NULL if there is none."""
    n = context.num_rows
    array = args[0].array(n)
    positions, rows, equal = _hits(array, array.keys, args[1], n)
    hit = np.asarray(pc.fill_null(equal, False).to_numpy(zero_copy_only=False))
    first_hits = np.full(n, -1, np.int64)
    first_hits[rows[hit][::-1]] = positions[hit][::-1]
    return array.items.take(pa.array(np.maximum(first_hits, 0), mask=first_hits < 0))


def _map_part(keys: bool) -> Any:
    def run(args: Sequence[Vector], context: CallContext) -> Data:
        array = args[0].array(context.num_rows)
        items = elements(array, array.keys if keys else array.items)
        return list_array(items.values, items.sizes, items.nulls, context.dtype)

    return run


def _part_type(keys: bool) -> Any:
    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        if not pa.types.is_map(types[0]):
            raise PlanError(f"{t.spark_name(types[0])} is not a map")
        return pa.list_(types[0].key_type if keys else types[0].item_field.with_name("element"))

    return rule


def _zero_based(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [types[0], t.INT]


register_internal(
    # GetStructField(child, ordinal): the ordinal as an int literal
    Function(
        "get_struct_field",
        _get_field,
        depends_on_values,
        catalyst=("GetStructField",),
        simplification=Simplification.ELEMENT,
        arity=(2, 2),
        nullable=Nullability.STRUCT_OR_FIELD,
        reads_field=True,
        result_of=_field_type,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    # GetArrayStructFields(child, ..., ordinal, ...): likewise
    Function(
        "get_array_struct_fields",
        _field_of_each,
        depends_on_values,
        catalyst=("GetArrayStructFields",),
        arity=(2, 2),
        result_of=_field_of_each_type,
        reads_field=True,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
register(
    Function(
        "named_struct",
        _named_struct,
        depends_on_values,
        catalyst=("CreateNamedStruct",),
        builds=Constructor.STRUCT,
        arity=(2, None),
        nullable=Nullability.NEVER,
        result_of=_struct_type,
        calls=ALL_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
register_internal(
    # failOnError true: ANSI mode; false (also GET): TRY mode
    Function(
        "get_array_item",
        _get_item,
        _element_type,
        catalyst=("GetArrayItem",),
        simplification=Simplification.ELEMENT,
        parameters=CatalystParameters(null_if_not_failing=True),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        raises=ANSI_RAISES,
        coerce=_zero_based,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "get_map_value",
        _map_value,
        _value_type,
        catalyst=("GetMapValue",),
        simplification=Simplification.MAP_VALUE,
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
register(
    # failOnError as above; an index of zero raises in every mode
    Function(
        "element_at",
        _element_at,
        _element_at_type,
        catalyst=("ElementAt",),
        parameters=CatalystParameters(null_if_not_failing=True),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        raises=ALWAYS_RAISES,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "size",
        _size,
        _size_type,
        catalyst=("Size",),
        simplification=Simplification.SIZE,
        parameters=CatalystParameters(ignored=("legacySizeOfNull",)),
        aliases=("cardinality", "array_size"),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array_contains",
        _array_contains,
        _contains_type,
        catalyst=("ArrayContains",),
        arity=(2, 2),
        coerce=coerce_to_element,
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "array",
        _array,
        _array_type,
        catalyst=("CreateArray",),
        builds=Constructor.ARRAY,
        parameters=CatalystParameters(ignored=("useStringTypeWhenEmpty",)),
        calls=ALL_COLUMNS,
        arity=(0, None),
        nullable=Nullability.NEVER,
        coerce=_coerce_to_common_type,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "map_keys", _map_part(True), _part_type(True), catalyst=("MapKeys",), invalid_utf8=InvalidUtf8.BYTES
    ),
    Function(
        "map_values",
        _map_part(False),
        _part_type(False),
        catalyst=("MapValues",),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
