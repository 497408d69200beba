"""Implements FROM_JSON with a map type: finds the entries of each object, and parses all values as one JSON column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.compiled import JSON_LOOPS
from kquery_spark.kernels.elements import value_ranks
from kquery_spark.kernels.integer_order import distinct_values, stable_order
from kquery_spark.kernels.json_bytes import SPACE
from kquery_spark.kernels.json_parser import UNCERTAIN_REASON, MalformedJson, parse_line
from kquery_spark.kernels.maps import map_array
from kquery_spark.kernels.text import as_lines, build, layout
from kquery_spark.sources.json.blocks import read_rows
from kquery_spark.sources.json.options import JsonOptions
from kquery_spark.sources.json.values import check_type
from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s

# statuses of a string in the compiled loops: an object, or one that only the parser in Python handles
_VALUE, _ODD = 1, 2
_LOADED_ROWS = 2_000  # for more strings than this, Python takes longer than loading the compiled loops
_MAX_NAME_BYTES = 50_000  # Jackson reads no longer names
_CONTROL = r"[\x00-\x1f]"  # control characters, which a string inside of JSON must not contain unescaped


def check_map(dtype: pa.DataType) -> None:
    """Raise Unsupported for a map type that FROM_JSON does not support."""
    if dtype.key_type != t.STRING or t.is_nested(dtype.item_type):
        raise Unsupported(f"from_json of {t.spark_name(dtype)} is not supported")
    check_type("value", dtype.item_type)


@dataclass(frozen=True)
class _Entries:
    """The entries of objects. rows: the row of each entry's object, ascending. values: the JSON of each value."""

    rows: Int64s
    names: pa.Array
    values: pa.Array


def map_rows(strings: pa.Array, dtype: pa.DataType, options: JsonOptions) -> pa.Array:
    """Parse strings, which must not be NULL, to maps; NULL for strings that are not an object of values of the type."""
    entries, is_null = _entries(strings)
    if len(entries.rows) and pc.max(pc.binary_length(entries.names)).as_py() > _MAX_NAME_BYTES:
        raise Unsupported(f"JSON names of more than {_MAX_NAME_BYTES} bytes are not supported")
    ids = value_ranks(entries.names)
    if len(distinct_values(entries.rows * (int(ids.max(initial=0)) + 1) + ids)) < len(ids):
        raise Unsupported("from_json of a map with a name twice is not supported")
    lines = as_lines(pc.binary_join_element_wise('{"v":', entries.values, "}", ""))
    values = read_rows(lines, pa.schema([pa.field("v", dtype.item_type)]), options)
    if values.num_rows != len(ids):
        raise Unsupported("from_json of values with several lines is not supported")
    is_null[entries.rows[~values.good]] = True
    valid_entries = pa.array(np.flatnonzero(~is_null[entries.rows]))
    sizes = np.bincount(entries.rows, minlength=len(strings))
    names, values_of_maps = entries.names.take(valid_entries), values.columns[0].take(valid_entries)
    return map_array(names, values_of_maps, sizes, is_null, dtype)


def _entries(strings: pa.Array) -> tuple[_Entries, Any]:
    """Return the entries of all strings, and which strings are not objects."""
    if len(strings) >= _LOADED_ROWS:
        JSON_LOOPS.load()
    loops: Any = JSON_LOOPS.kernels()
    if loops is None:
        return _parsed_entries(strings, np.arange(len(strings)), np.zeros(len(strings), np.bool_))
    # The loops accept control characters inside of strings, but Spark's parser does not. Outside of strings some of them are
    # blanks, so Python decides: it parses all strings that have any, and the loops get {} instead.
    has_control = np.zeros(len(strings), np.bool_)
    offsets, raw = layout(strings)
    if (raw[offsets[0] : offsets[-1]] < SPACE).any():
        has_control = np.asarray(pc.match_substring_regex(strings, _CONTROL))
        offsets, raw = layout(pc.if_else(pa.array(has_control), "{}", strings))
    ends, status = np.empty(len(strings) + 1, np.int64), np.empty(len(strings), np.uint8)
    bounds = np.empty(int(offsets[-1] - offsets[0]) + 4, np.int64)
    count = loops.json_entries(raw, offsets, ends, bounds, status)
    name_begins, name_ends, value_begins, value_ends = bounds[: 4 * count].reshape(-1, 4).T
    rows = np.repeat(np.arange(len(strings)), np.diff(ends))
    compiled = _Entries(rows, _cut(raw, name_begins, name_ends), _cut(raw, value_begins, value_ends))
    is_odd = has_control | (status == _ODD)
    is_null = ~is_odd & (status != _VALUE)
    if not is_odd.any():
        return compiled, is_null
    odd, is_null = _parsed_entries(strings, np.flatnonzero(is_odd), is_null)
    order = stable_order(np.concatenate([compiled.rows, odd.rows]))
    index = pa.array(order)
    names = pa.concat_arrays([compiled.names, odd.names]).take(index)
    values = pa.concat_arrays([compiled.values, odd.values]).take(index)
    return _Entries(np.concatenate([compiled.rows, odd.rows])[order], names, values), is_null


def _cut(raw: Any, begins: Int64s, ends: Int64s) -> pa.Array:
    """Build the strings between pairs of positions in ``raw``."""
    bounds = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(ends - begins, out=bounds[1:])
    positions = np.repeat(begins - bounds[:-1], ends - begins) + np.arange(bounds[-1])
    return build(bounds, raw[positions], None)


def _parsed_entries(strings: pa.Array, rows: Int64s, is_null: Any) -> tuple[_Entries, Any]:
    """Parse some rows in Python; return their entries, and ``is_null`` with the strings that are not objects."""
    owners: list[int] = []
    names: list[str] = []
    values: list[str] = []
    is_null = is_null.copy()
    for row, text in zip(rows.tolist(), strings.take(pa.array(rows)).to_pylist(), strict=True):
        try:
            node = parse_line(text)
        except MalformedJson as error:
            if not error.certain:
                raise Unsupported(f"from_json declines a string that is {UNCERTAIN_REASON}") from None
            node = None
        if node is None or node.kind != "object":
            is_null[row] = True
            continue
        owners += [row] * len(node.items)
        names += node.names
        # line ends between values are only blanks, and each value must stay on one line
        values += [value.raw.replace("\n", "\t").replace("\r", "\t") for value in node.items]
    entries = _Entries(np.array(owners, np.int64), pa.array(names, t.STRING), pa.array(values, t.STRING))
    return entries, is_null
