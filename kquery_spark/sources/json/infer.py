"""Infers the columns of JSON files from all values of all files, by Spark's rules.

Intermediate types are Arrow types: null for a field without a value so far, struct for objects, list for arrays. Blocks are
inferred one by one and merged. For example, ``{"a": 1}`` and ``{"a": null, "b": [1.5]}`` have the types struct<a: int64> and
struct<a: null, b: list<double>>, which are merged to struct<a: int64, b: list<double>>.
"""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.json_parser import MalformedJson, Node, parse_line
from kquery_spark.sources.json.blocks import LineError, parse_objects, parse_or_bisect, split_lines
from kquery_spark.sources.json.options import JsonOptions
from kquery_spark.types import names as t

_EMPTY = pa.struct([])


class _DuplicateNameError(Exception):
    """An object has a name twice, so that Spark would infer a duplicate column or struct field."""


def block_type(block: bytes, options: JsonOptions) -> pa.DataType:
    """The struct type of the records of a block (line ends normalized)."""
    lines, odd = split_lines(block)
    types = [_EMPTY]

    def attempt(line_indexes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
        table = parse_objects(lines.concatenate(line_indexes), len(line_indexes), None)
        dtype = None if table is None else _type_of_parsed(table.to_struct_array().combine_chunks())
        if dtype is not None:
            types.append(dtype)
        return dtype is not None

    left = parse_or_bisect(np.flatnonzero(~odd), attempt)
    for line in [*np.flatnonzero(odd).tolist(), *left]:
        try:
            node = parse_line(lines.text(line))
        except MalformedJson:
            if options.mode == "DROPMALFORMED":
                continue
            raise LineError(lines.number(line), "malformed, from which no types are inferred") from None
        except Unsupported as error:
            raise LineError(lines.number(line), error.reason) from None
        if node is None:
            continue
        if node.kind != "object":
            raise LineError(
                lines.number(line), f"{_article(node.kind)} where types are inferred from objects"
            )
        try:
            types.append(_node_type(node))
        except _DuplicateNameError as error:
            raise LineError(lines.number(line), f"an object with two values of {error}") from None
    result = types[0]
    for dtype in types[1:]:
        result = merged(result, dtype)
    return result


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def columns_of(dtype: pa.DataType, options: JsonOptions) -> pa.Schema:
    """The table's columns for an inferred type: ordered by name, without structs that have no fields."""
    final = _canonical(dtype)
    if final is None:
        return pa.schema([])
    if has_duplicate_fields(final, options.case_sensitive):
        raise Unsupported("JSON with names that differ only in case is not supported")
    return pa.schema(list(final))


def has_duplicate_fields(dtype: pa.DataType, case_sensitive: bool) -> bool:
    """True if the type or a struct nested in it has two fields with the same name."""
    if pa.types.is_list(dtype):
        return has_duplicate_fields(dtype.value_type, case_sensitive)
    if not pa.types.is_struct(dtype):
        return False
    names = {field.name if case_sensitive else field.name.lower() for field in dtype}
    return len(names) < dtype.num_fields or any(
        has_duplicate_fields(field.type, case_sensitive) for field in dtype
    )


def merged(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The common type of two inferred types; string if nothing else fits."""
    if a == b or b == t.NULL:
        return a
    if a == t.NULL:
        return b
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        return _merged_structs(a, b)
    if pa.types.is_list(a) and pa.types.is_list(b):
        return pa.list_(merged(a.value_type, b.value_type))
    return _merged_numbers(a, b) if t.is_numeric(a) and t.is_numeric(b) else t.STRING


def _merged_structs(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    types = {f.name: f.type for f in a}
    for field in b:
        types[field.name] = merged(types.get(field.name, t.NULL), field.type)
    return _struct(types)


def _merged_numbers(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if t.DOUBLE in (a, b):
        return t.DOUBLE
    whole = max(_digits(a) - _scale(a), _digits(b) - _scale(b))
    scale = max(_scale(a), _scale(b))
    return t.decimal(whole + scale, scale) if whole + scale <= 38 else t.DOUBLE


def _digits(dtype: pa.DataType) -> int:
    return int(dtype.precision) if t.is_decimal(dtype) else 20


def _scale(dtype: pa.DataType) -> int:
    return int(dtype.scale) if t.is_decimal(dtype) else 0


def _struct(types: dict[str, pa.DataType]) -> pa.DataType:
    # Spark orders names like Java, by UTF-16 code units.
    return pa.struct([(name, types[name]) for name in sorted(types, key=lambda n: n.encode("utf-16-be"))])


def _canonical(dtype: pa.DataType) -> pa.DataType | None:
    """Return the final type for an inferred one: string for null, and None for a struct without fields."""
    if dtype == t.NULL:
        return t.STRING
    if pa.types.is_struct(dtype):
        fields = [(f.name, _canonical(f.type)) for f in dtype if f.name]
        known = [(name, final) for name, final in fields if final is not None]
        return pa.struct(known) if known else None
    if pa.types.is_list(dtype):
        final = _canonical(dtype.value_type)
        return None if final is None else pa.list_(final)
    return dtype


def _type_of_parsed(array: pa.Array) -> pa.DataType | None:
    """Spark's type for values that Arrow parsed without a schema; None if Arrow's type does not determine it."""
    dtype = array.type
    if dtype in (t.NULL, t.BOOL, t.LONG):
        return dtype
    if dtype == t.DOUBLE:
        limits = pc.min_max(array).as_py()
        # A larger number may be written without a point, and Spark would infer a decimal for it.
        return t.DOUBLE if max(-limits["min"], limits["max"]) < 2.0**63 else None
    if dtype == t.STRING:
        return t.STRING if pc.max(pc.binary_length(array)).as_py() else t.NULL
    if pa.types.is_temporal(dtype):
        return t.STRING
    if pa.types.is_struct(dtype):
        return _type_of_parsed_struct(array)
    if pa.types.is_list(dtype):
        inner = _type_of_parsed(array.flatten())
        return None if inner is None else pa.list_(inner)
    return None


def _type_of_parsed_struct(array: pa.Array) -> pa.DataType | None:
    types: dict[str, pa.DataType] = {}
    for i, field in enumerate(array.type):
        field_type = _type_of_parsed(array.field(i))
        if field_type is None:
            return None
        types[field.name] = field_type
    return _struct(types)


def _node_type(node: Node) -> pa.DataType:
    match node.kind:
        case "object":
            types: dict[str, pa.DataType] = {}
            for name, child in node.fields():
                if name in types:
                    raise _DuplicateNameError(name)
                types[name] = _node_type(child)
            return _struct(types)
        case "array":
            return pa.list_(functools.reduce(merged, map(_node_type, node.items), t.NULL))
        case "string":
            return t.STRING if node.value else t.NULL
        case "integer":
            return _integer_type(node.value)
        case "boolean":
            return t.BOOL
        case "null":
            return t.NULL
        case _:
            return t.DOUBLE


def _integer_type(text: str) -> pa.DataType:
    if -(2**63) <= int(text) < 2**63:
        return t.LONG
    digits = len(text.lstrip("-"))
    return t.decimal(digits, 0) if digits <= 38 else t.DOUBLE
