"""Functions of JSON strings: GET_JSON_OBJECT, JSON_TUPLE's fields, JSON_ARRAY_LENGTH and JSON_OBJECT_KEYS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.casts.floats import java_text
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.json.paths import check_path, has_question_mark, parse_path
from kquery_spark.functions.registry import (
    CallContext,
    Function,
    JavaMethod,
    Nullability,
    VersionChange,
    accept,
    cast_to,
    register,
    register_internal,
)
from kquery_spark.kernels import json_documents, json_wildcards
from kquery_spark.kernels.compiled import JSON_LOOPS
from kquery_spark.kernels.json_parser import Node, parse_string
from kquery_spark.kernels.json_wildcards import EACH
from kquery_spark.kernels.text import build, layout
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_gather
from kquery_spark.types.vector import Data, Vector

_NULL, _VALUE, _ODD = 0, 1, 2  # what the compiled loops say of a string
_LOADED_ROWS = 2_000  # Python takes longer for more strings than loading the compiled loops does


def _loops(rows: int) -> Any:
    """The compiled loops; None while there are none."""
    if rows >= _LOADED_ROWS:
        JSON_LOOPS.load()
    return JSON_LOOPS.kernels()


def _to_string(node: Node) -> str | None:
    """A value as a string: strings without quotes; None for one that UTF-8 has no bytes for."""
    if node.kind != "string":
        return json_documents.to_json(node, java_text)
    return node.value if _is_encodable(node.value) else None


def _is_encodable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


# --- values at a path -----------------------------------------------------------------------------


def _get_json_object(args: Sequence[Vector], context: CallContext) -> Data:
    """The value at a path as a string; NULL where there is none or the string is not JSON."""
    path = args[1].data.as_py()
    steps = None if path is None else parse_path(path)
    if steps is None:
        return pa.nulls(context.num_rows, t.STRING)

    if EACH in steps:
        return _wildcard_matches(args[0], steps, context)

    def evaluate(text: str) -> str | None:
        document = parse_string(text)
        value = None if document is None else json_documents.value_at(document, steps)
        return None if value is None else _to_string(value)

    return _values_at(args[0], steps, False, evaluate, context)


def _wildcard_matches(vector: Vector, steps: tuple[str | int, ...], context: CallContext) -> Data:
    """Return the matches of a path with a wildcard."""

    def evaluate(text: str) -> str | None:
        document = parse_string(text)
        return None if document is None else json_wildcards.write_matches(document, steps, java_text)

    return _values_at(vector, steps, False, evaluate, context)


def _values_at(
    vector: Vector,
    steps: tuple[str | int, ...],
    takes_last: bool,
    evaluate: Callable[[str], str | None],
    context: CallContext,
) -> Data:
    loops = _loops(context.num_rows)
    if loops is None:
        return per_distinct(evaluate, [vector], context)
    array = vector.array(context.num_rows)
    offsets, raw = _layout(array)
    names = [step.encode() if isinstance(step, str) else b"" for step in steps]
    bounds = np.cumsum([0, *map(len, names)], dtype=np.int64)
    indexes = np.array([step if isinstance(step, int) else -1 for step in steps], np.int64)
    ends = np.empty(len(array) + 1, np.int64)
    has_wildcard = EACH in steps
    out = np.empty((2 if has_wildcard else 1) * int(offsets[-1] - offsets[0]) + 8, np.uint8)
    status = np.empty(len(array), np.uint8)
    name_bytes = np.frombuffer(b"".join(names), np.uint8)
    if has_wildcard:
        wildcard = steps.index(EACH)
        size = loops.json_matches(raw, offsets, name_bytes, bounds, indexes, wildcard, ends, out, status)
    else:
        size = loops.json_values(raw, offsets, name_bytes, bounds, indexes, takes_last, ends, out, status)
    values = build(ends, out[:size], _is_missing(status))
    return _fill_odd_rows(values, status, array, evaluate, context)


def _layout(array: pa.Array) -> tuple[Any, Any]:
    """Offsets and bytes that the loops take, with nothing to read for NULL rows."""
    if array.null_count:
        array = pc.fill_null(array, "")
    offsets, raw = layout(array)
    return offsets, raw


def _is_missing(status: Any) -> Any:
    missing = status != _VALUE
    return missing if missing.any() else None


def _fill_odd_rows(
    values: pa.Array, status: Any, strings: pa.Array, evaluate: Callable[[str], Any], context: CallContext
) -> pa.Array:
    """The values, with Python's for the odd strings."""
    odd = status == _ODD
    if not odd.any():
        return values
    odd_rows = np.flatnonzero(odd)
    odd_strings = Vector(t.STRING, strings.take(pa.array(odd_rows)))
    odd_values = per_distinct(evaluate, [odd_strings], replace(context, num_rows=len(odd_rows)))
    indices = np.arange(len(values))
    indices[odd_rows] = len(values) + np.arange(len(odd_rows))
    reserve_gather([values], pa.array(indices))
    return pa.concat_arrays([values, odd_values.cast(values.type)]).take(pa.array(indices))


# --- JSON_TUPLE -----------------------------------------------------------------------------------


def _json_field(args: Sequence[Vector], context: CallContext) -> Data:
    """One column of JSON_TUPLE: the last field of the name that is not null."""
    name = args[1].data.as_py()

    def evaluate(text: str) -> str | None:
        document = parse_string(text)
        if document is None or document.kind != "object":
            return None
        values = [item for field, item in document.fields() if field == name and item.kind != "null"]
        return _to_string(values[-1]) if values else None

    return _values_at(args[0], (name,), True, evaluate, context)


# --- lengths and names ----------------------------------------------------------------------------


def _json_array_length(args: Sequence[Vector], context: CallContext) -> Data:
    def evaluate(text: str) -> int | None:
        document = parse_string(text)
        return len(document.items) if document is not None and document.kind == "array" else None

    loops = _loops(context.num_rows)
    if loops is None:
        return per_distinct(evaluate, args, context)
    array = args[0].array(context.num_rows)
    offsets, raw = _layout(array)
    lengths, status = np.empty(len(array), np.int64), np.empty(len(array), np.uint8)
    loops.json_lengths(raw, offsets, lengths, status)
    values = pa.array(lengths.astype(np.int32), mask=_is_missing(status))
    return _fill_odd_rows(values, status, array, evaluate, context)


def _json_object_keys(args: Sequence[Vector], context: CallContext) -> Data:
    def evaluate(text: str) -> list[str] | None:
        document = parse_string(text)
        if document is None or document.kind != "object":
            return None
        return [_encodable(name) for name in document.names]

    loops = _loops(context.num_rows)
    if loops is None:
        return per_distinct(evaluate, args, context)
    array = args[0].array(context.num_rows)
    offsets, raw = _layout(array)
    ends, status = np.empty(len(array) + 1, np.int64), np.empty(len(array), np.uint8)
    name_bounds = np.empty(2 * int(offsets[-1] - offsets[0]) + 2, np.int64)
    count = loops.json_names(raw, offsets, ends, name_bounds, status)
    begins, lasts = name_bounds[: 2 * count : 2], name_bounds[1 : 2 * count : 2]
    bounds = np.zeros(count + 1, np.int64)
    np.cumsum(lasts - begins, out=bounds[1:])
    positions = np.repeat(begins - bounds[:-1], lasts - begins) + np.arange(bounds[-1])
    missing = _is_missing(status)
    mask = None if missing is None else pa.array(missing)
    names = pa.ListArray.from_arrays(
        pa.array(ends.astype(np.int32)), build(bounds, raw[positions], None), mask=mask
    )
    return _fill_odd_rows(names.cast(context.dtype), status, array, evaluate, context)


def _encodable(name: str) -> str:
    return "".join("?" if "\ud800" <= c <= "\udfff" else c for c in name)


_KEYS = pa.list_(pa.field("element", t.STRING))

register(
    Function(
        "get_json_object",
        _get_json_object,
        accept(t.STRING, t.STRING, t.STRING),
        catalyst=("GetJsonObject",),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        loops=JSON_LOOPS,
        coerce=cast_to(t.STRING),
        check_values=check_path,
        changes=(
            VersionChange(
                "finds nothing for a name in quotes with a question mark", has_question_mark, (4, 0)
            ),
        ),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "json_array_length",
        _json_array_length,
        accept(t.INT, t.STRING),
        catalyst=("LengthOfJsonArray",),
        java=(JavaMethod("JsonExpressionUtils", "lengthOfJsonArray"),),
        nullable=Nullability.OTHER_REASONS,
        loops=JSON_LOOPS,
        coerce=cast_to(t.STRING),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "json_object_keys",
        _json_object_keys,
        accept(_KEYS, t.STRING),
        catalyst=("JsonObjectKeys",),
        java=(JavaMethod("JsonExpressionUtils", "jsonObjectKeys"),),
        nullable=Nullability.OTHER_REASONS,
        loops=JSON_LOOPS,
        coerce=cast_to(t.STRING),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
register_internal(
    # a column of the generator json_tuple
    Function(
        "json_field",
        _json_field,
        accept(t.STRING, t.STRING, t.STRING),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        loops=JSON_LOOPS,
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
