"""TO_JSON: structs, arrays and maps as strings, as Jackson writes them for Spark; fields that are NULL are left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.calling import call
from kquery_spark.functions.casts import cast
from kquery_spark.functions.datetime.date_fields import local
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    CallContext,
    EvalMode,
    Function,
    Nullability,
    VersionChange,
    function,
    register,
)
from kquery_spark.kernels.elements import elements, list_offsets
from kquery_spark.kernels.escapes import Escapes
from kquery_spark.kernels.json_documents import SHORT_ESCAPES
from kquery_spark.kernels.text import if_else
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_ESCAPES = Escapes({chr(code): f"\\u{code:04X}" for code in range(32)} | SHORT_ESCAPES)
_TIMESTAMP = "yyyy-MM-dd'T'HH:mm:ss.SSS"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # years of four digits
_SECOND_MICROS = 1_000_000
_FINITE = r"^[^NI]*$"  # of the strings of doubles


def _has_instants(dtype: pa.DataType) -> bool:
    return t.is_timestamp(dtype) or any(map(_has_instants, t.parts_of(dtype)))


WHOLE_MINUTES = VersionChange(
    "writes the offsets of old timestamps without their seconds",
    lambda types, _: _has_instants(types[0]),
    since=(4, 0),
)
"""Releases before 4.0 write offsets of old timestamps, such as -00:01:15, without their seconds."""


def _to_json(args: Sequence[Vector], context: CallContext) -> Data:
    return _to_json_strings(args[0].array(context.num_rows), context)


def _to_json_strings(array: pa.Array, context: CallContext) -> pa.Array:
    """Each value as JSON; NULL where it is NULL."""
    dtype = array.type
    if pa.types.is_struct(dtype):
        return _objects(array, context)
    if pa.types.is_map(dtype):
        return _maps(array, context)
    if pa.types.is_list(dtype):
        return _arrays(array, context)
    if dtype == t.STRING:
        return quoted(array)
    if dtype == t.BINARY:
        plain = Vector(t.BOOL, pa.scalar(False))
        return quoted(_call_function("base64", [Vector(dtype, array), plain], t.STRING, context))
    strings = plain_text(array, context)
    if dtype == t.DATE or pa.types.is_timestamp(dtype):
        return quoted(strings)
    if not t.is_fractional(dtype):
        return strings
    return pc.if_else(pc.match_substring_regex(strings, _FINITE), strings, quoted(strings))


def plain_text(array: pa.Array, context: CallContext) -> pa.Array:
    """Values that are not nested as Spark writes them to text formats, without quotes."""
    if array.type == t.DATE:
        _check_days(array.view(pa.int32()))
    if pa.types.is_timestamp(array.type):
        return _moments(array, context)
    # outside of ANSI mode decimals are printed by BigDecimal.toString, as Jackson prints them
    return cast(Vector(array.type, array), t.STRING, EvalMode.LEGACY, context.tz, len(array)).array(
        len(array)
    )


def _moments(array: pa.Array, context: CallContext) -> pa.Array:
    args = [Vector(array.type, array), Vector(t.STRING, pa.scalar(_TIMESTAMP))]
    strings = _call_function("date_format", args, t.STRING, context)
    if array.type == t.TIMESTAMP_NTZ:
        return strings
    wall, _ = local(args[0], CallContext(t.STRING, context.mode, context.tz, len(array)))
    instants = pc.fill_null(array.view(pa.int64()), 0).to_numpy()
    offsets, places = np.unique((wall - instants) // _SECOND_MICROS, return_inverse=True)
    shown = pa.array([_offset(int(seconds)) for seconds in offsets], t.STRING)
    return pc.binary_join_element_wise(strings, shown.take(pa.array(places)), "")


def _offset(seconds: int) -> str:
    """Seconds east of UTC as Spark shows them; those of old times in many zones are no whole minutes."""
    minutes, rest = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}{f':{rest:02}' if rest else ''}"
    return text if seconds else "Z"


def _check_days(days: pa.Array) -> None:
    bounds = pc.min_max(days).as_py()
    if bounds["min"] is not None and not _FIRST_DAY <= bounds["min"] <= bounds["max"] <= _LAST_DAY:
        raise Unsupported("strings of dates before the year 1 or after 9999 are not supported")


def _call_function(name: str, args: Sequence[Vector], dtype: pa.DataType, context: CallContext) -> pa.Array:
    rows = len(args[0].data)
    return call(function(name), args, CallContext(dtype, context.mode, context.tz, rows)).array(rows)


def _objects(array: pa.Array, context: CallContext) -> pa.Array:
    pieces = []
    for i, field in enumerate(array.type):
        values = _to_json_strings(pc.struct_field(array, [i]), context)
        name = quoted(pa.array([field.name]))[0].as_py()
        pieces.append(pc.fill_null(pc.binary_join_element_wise(f",{name}:", values, ""), ""))
    if not pieces:
        return pc.if_else(array.is_valid(), "{}", pa.scalar(None, t.STRING))
    fields = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*pieces, ""), 1)
    return _enclose("{", fields, "}", array)


def _arrays(array: pa.Array, context: CallContext) -> pa.Array:
    items = pc.fill_null(_to_json_strings(array.flatten(), context), "null")
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(pc.fill_null(pc.list_value_length(array), 0).to_numpy(), out=offsets[1:])
    return _enclose("[", pc.binary_join(pa.ListArray.from_arrays(offsets, items), ","), "]", array)


def _maps(array: pa.Array, context: CallContext) -> pa.Array:
    """Objects of the entries; unlike fields of structs, values that are NULL are written."""
    entries = elements(array, array.keys)
    names = quoted(plain_text(entries.values, context))
    values = pc.fill_null(_to_json_strings(elements(array, array.items).values, context), "null")
    pairs = pc.binary_join_element_wise(names, values, ":")
    lists = pa.ListArray.from_arrays(list_offsets(entries.sizes, entries.nulls), pairs)
    return _enclose("{", pc.binary_join(lists, ","), "}", array)


def _enclose(first: str, strings: pa.Array, last: str, array: pa.Array) -> pa.Array:
    whole = pc.binary_join_element_wise(first, strings, last, "")
    return if_else(array.is_valid(), whole, pa.scalar(None, t.STRING)) if array.null_count else whole


def quoted(array: pa.Array) -> pa.Array:
    """Strings in quotes, escaped as Jackson does; NULL stays NULL."""
    return pc.binary_join_element_wise('"', _ESCAPES.apply(array), '"', "")


def _type(types: Sequence[pa.DataType]) -> pa.DataType:
    if not t.is_nested(types[0]):
        raise PlanError("to_json needs a struct, an array or a map")
    _check_type(types[0])
    return t.STRING


def _check_type(dtype: pa.DataType) -> None:
    if pa.types.is_struct(dtype):
        for field in dtype:
            _check_type(field.type)
    elif pa.types.is_map(dtype):
        if not (dtype.key_type == t.STRING or t.is_integral(dtype.key_type)):
            raise Unsupported(f"to_json of maps with {t.spark_name(dtype.key_type)} keys is not supported")
        _check_type(dtype.item_type)
    elif pa.types.is_list(dtype):
        _check_type(dtype.value_type)
    elif not (
        dtype in (t.STRING, t.BINARY, t.BOOL, t.DATE) or t.is_numeric(dtype) or pa.types.is_timestamp(dtype)
    ):
        raise Unsupported(f"to_json of {t.spark_name(dtype)} is not supported")


register(
    Function(
        "to_json",
        _to_json,
        _type,
        nullable=Nullability.OTHER_REASONS,
        changes=(WHOLE_MINUTES,),
        invalid_utf8=InvalidUtf8.REPLACED,
    )
)
