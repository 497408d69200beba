"""Functions that build maps from keys and values, arrays, entries, other maps, and strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import ALL_COLUMNS, TWO_COLUMNS, CallForm
from kquery_spark.functions.core.arguments import dense_mask
from kquery_spark.functions.core.comparison import coerce_comparison
from kquery_spark.functions.core.conditional import common_argument_type
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    COLUMN,
    CallContext,
    CatalystParameters,
    Constructor,
    EvalMode,
    Function,
    Nullability,
    VersionChange,
    cast_to,
    register,
)
from kquery_spark.kernels.elements import Elements, Mask, cast_nullability, check_size, elements, is_array
from kquery_spark.kernels.integer_order import stable_order
from kquery_spark.kernels.maps import build_maps
from kquery_spark.kernels.ordered_bytes import can_order
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.vector import Data, Int64s, Vector

_LENGTHS_DIFFER = "The key array and value array of MapData must have the same length."
_REGEX_CHARACTERS = frozenset("\\^$.|?*+()[]{}")


def _build_maps(
    rows: Int64s,
    keys: pa.Array,
    items: pa.Array,
    nulls: Mask,
    context: CallContext,
    keeps_zeros: bool = False,
) -> pa.Array:
    dtype, last_wins = context.dtype, context.mode is EvalMode.LEGACY
    keys, items = cast_nullability(keys, dtype.key_type), cast_nullability(items, dtype.item_type)
    return build_maps(rows, keys, items, nulls, dtype, last_wins, keeps_zeros)


def _map(args: Sequence[Vector], context: CallContext) -> Data:
    """``map(key, value, key, value, ...)``."""
    n, width = context.num_rows, len(args) // 2
    check_size(n * width)
    order = pa.array(np.arange(n * width).reshape(width, n).T.reshape(-1) if width else np.zeros(0, np.int64))
    keys, items = (
        pa.concat_arrays([cast_nullability(a.array(n), dtype) for a in side]).take(order)
        if side
        else pa.nulls(0, dtype)
        for side, dtype in ((args[::2], context.dtype.key_type), (args[1::2], context.dtype.item_type))
    )
    return _build_maps(np.repeat(np.arange(n), width), keys, items, np.zeros(n, np.bool_), context)


def _from_arrays(args: Sequence[Vector], context: CallContext) -> Data:
    """``map_from_arrays(keys, values)``."""
    n = context.num_rows
    nulls = dense_mask(args, n)
    keys, items = (_present_elements(elements(a.array(n)), nulls) for a in args)
    if (keys.sizes != items.sizes).any():
        raise ExecutionError("_LEGACY_ERROR_TEMP_2128", _LENGTHS_DIFFER)
    return _build_maps(keys.rows, keys.values, items.values, nulls, context, keeps_zeros=True)


def _present_elements(items: Elements, nulls: Mask) -> Elements:
    """The elements of the rows that are not NULL."""
    if not nulls[items.rows].any():
        return Elements(np.where(nulls, 0, items.sizes), items.rows, items.values, nulls)
    kept = np.flatnonzero(~nulls[items.rows])
    values = items.values.take(pa.array(kept))
    return Elements(np.where(nulls, 0, items.sizes), items.rows[kept], values, nulls)


def _from_entries(args: Sequence[Vector], context: CallContext) -> Data:
    """``map_from_entries(array of structs)``; NULL if an entry is NULL."""
    entries = elements(args[0].array(context.num_rows))
    nulls = entries.nulls.copy()
    nulls[entries.rows[np.asarray(entries.values.is_null().to_numpy(zero_copy_only=False), np.bool_)]] = True
    entries = _present_elements(entries, nulls)
    keys, items = (pc.struct_field(entries.values, [i]) for i in range(2))
    return _build_maps(entries.rows, keys, items, nulls, context)


def _concat(args: Sequence[Vector], context: CallContext) -> Data:
    """``map_concat(map, map, ...)``: the entries of all maps; NULL if one of the maps is NULL."""
    n, dtype = context.num_rows, context.dtype
    nulls = dense_mask(args, n)
    arrays = [a.array(n) for a in args]
    parts = [elements(array, array.keys) for array in arrays]
    keys = pa.concat_arrays([cast_nullability(part.values, dtype.key_type) for part in parts])
    items = pa.concat_arrays([cast_nullability(elements(a, a.items).values, dtype.item_type) for a in arrays])
    rows = np.concatenate([part.rows for part in parts])
    order = stable_order(rows)
    order = order[~nulls[rows[order]]]
    check_size(len(order))
    places = pa.array(order)
    return _build_maps(rows[order], keys.take(places), items.take(places), nulls, context)


def _str_to_map(args: Sequence[Vector], context: CallContext) -> Data:
    """``str_to_map(text, pair delimiter, key-value delimiter)``; a pair without the second delimiter has the value NULL."""
    n = context.num_rows
    strings = args[0].array(n)
    pairs = args[1].data.as_py() if len(args) > 1 else ","
    split = args[2].data.as_py() if len(args) > 2 else ":"
    if pairs is None or split is None:
        return pa.nulls(n, context.dtype)
    entries = elements(pc.split_pattern(strings, pairs))
    reserve_rows(len(entries.rows), 64)
    places = pc.find_substring(entries.values, split)
    found = pc.greater_equal(places, 0)
    halves = pc.split_pattern(entries.values, split, max_splits=1)
    keys = pc.list_element(halves, 0)
    with_value = halves.filter(found)
    values = pc.list_element(with_value, 1) if len(with_value) else pa.nulls(0, t.STRING)
    flags = np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)
    items = values.take(pa.array(np.cumsum(flags) - 1, mask=~flags))
    return _build_maps(entries.rows, keys, items, entries.nulls, context)


# --- types ----------------------------------------------------------------------------------------


def _map_type_of(key: pa.DataType, value: pa.Field) -> pa.DataType:
    if not can_order(key):
        raise PlanError(
            f"[DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE] {t.spark_name(key)} is not a key type of maps"
        )
    if key == t.NULL:
        raise Unsupported("maps of nothing but NULL keys are not supported")
    return pa.map_(pa.field("key", key, False), value.with_name("value"))


def _map_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if len(types) % 2:
        raise PlanError("[WRONG_NUM_ARGS.WITHOUT_SUGGESTION] map takes keys and values in turn")
    if not types:
        raise Unsupported("a map without entries has no type")
    return _map_type_of(
        common_argument_type(types[::2]), pa.field("value", common_argument_type(types[1::2]))
    )


def _coerce_map(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    if not types or len(types) % 2:
        return types
    coerced = list(types)
    coerced[::2], coerced[1::2] = coerce_comparison(types[::2]), coerce_comparison(types[1::2])
    return coerced


def _from_arrays_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not all(map(is_array, types)):
        raise PlanError(
            f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] map_from_arrays takes two arrays, not "
            f"{' and '.join(map(t.spark_name, types))}"
        )
    return _map_type_of(types[0].value_type, types[1].value_field)


def _from_entries_type(types: Sequence[pa.DataType]) -> pa.DataType:
    dtype = types[0]
    if not is_array(dtype) or not pa.types.is_struct(dtype.value_type) or dtype.value_type.num_fields != 2:
        raise PlanError(
            f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] map_from_entries cannot take {t.spark_name(dtype)}"
        )
    key, value = dtype.value_type
    return _map_type_of(key.type, value)


def _concat_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not all(map(pa.types.is_map, types)):
        raise PlanError("[DATATYPE_MISMATCH.MAP_CONCAT_DIFF_TYPES] map_concat takes maps")
    if len(set(map(t.spark_name, types))) > 1:
        raise Unsupported("map_concat of maps of several types is not supported")
    key, value = (
        common_argument_type([dtype.key_type for dtype in types]),
        common_argument_type([dtype.item_type for dtype in types]),
    )
    return _map_type_of(key, pa.field("value", value, any(dtype.item_field.nullable for dtype in types)))


def _text_type(types: Sequence[pa.DataType]) -> pa.DataType:
    if any(dtype not in (t.STRING, t.NULL) for dtype in types):
        raise PlanError("[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] str_to_map takes strings")
    return pa.map_(t.STRING, t.STRING)


def _check_delimiters(values: Sequence[object]) -> None:
    """Raise Unsupported for delimiters that are not constants, empty, or regular expressions."""
    for value in values[1:]:
        if value is COLUMN:
            raise Unsupported("str_to_map with delimiters that are not constants is not supported")
        if value is not None and (not value or _REGEX_CHARACTERS & set(str(value))):
            raise Unsupported("str_to_map with delimiters that are regular expressions is not supported")


def _has_float_keys(types: Sequence[pa.DataType], _: Sequence[object]) -> bool:
    dtype = types[0]
    if pa.types.is_map(dtype):
        return t.is_fractional(dtype.key_type)
    if not is_array(dtype):
        return any(map(t.is_fractional, types[::2]))
    element = dtype.value_type
    return t.is_fractional(element.field(0).type if pa.types.is_struct(element) else element)


# in mode LEGACY, the last of duplicate keys wins
_BUILDS = CatalystParameters(builds_map=True, ignored=("useStringTypeWhenEmpty", "legacySplitTruncate"))
_ZEROS = (VersionChange("takes -0.0 and 0.0 for two keys of a map", _has_float_keys, since=(4, 0)),)

register(
    Function(
        "map",
        _map,
        _map_type,
        catalyst=("CreateMap",),
        builds=Constructor.MAP,
        parameters=_BUILDS,
        arity=(0, None),
        nullable=Nullability.NEVER,
        raises=ALWAYS_RAISES,
        coerce=_coerce_map,
        calls=ALL_COLUMNS,
        changes=_ZEROS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "map_from_arrays",
        _from_arrays,
        _from_arrays_type,
        catalyst=("MapFromArrays",),
        parameters=_BUILDS,
        arity=(2, 2),
        raises=ALWAYS_RAISES,
        calls=TWO_COLUMNS,
        changes=_ZEROS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "map_from_entries",
        _from_entries,
        _from_entries_type,
        catalyst=("MapFromEntries",),
        parameters=_BUILDS,
        nullable=Nullability.ARGUMENT_OR_ELEMENT,
        raises=ALWAYS_RAISES,
        changes=_ZEROS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "map_concat",
        _concat,
        _concat_type,
        catalyst=("MapConcat",),
        parameters=_BUILDS,
        arity=(1, None),
        raises=ALWAYS_RAISES,
        foldable=False,
        calls=ALL_COLUMNS,
        changes=_ZEROS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    Function(
        "str_to_map",
        _str_to_map,
        _text_type,
        catalyst=("StringToMap",),
        parameters=_BUILDS,
        arity=(1, 3),
        raises=ALWAYS_RAISES,
        check_values=_check_delimiters,
        coerce=cast_to(t.STRING),
        calls=CallForm((0, 1, 2), adds=(1, ", ,, :"), shape=(2, "str_to_map({0}, {1}, :)")),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
