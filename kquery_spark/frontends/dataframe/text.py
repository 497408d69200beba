"""Formats rows and schemas like PySpark's ``show`` and ``printSchema``."""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from kquery_spark.frontends.sql.analyzer.naming.literal_text import interval_text, java_double, java_float
from kquery_spark.frontends.sql.ast.expressions import IntervalLiteral
from kquery_spark.functions.casts.table import family
from kquery_spark.types import names as t

_TREE_NAMES = {t.BYTE: "byte", t.SHORT: "short", t.INT: "integer", t.LONG: "long"}
_LEAST_WIDTH = 3


def table_text(names: Sequence[str], rows: Sequence[Sequence[str]], truncate: int) -> str:
    """Format rows as a grid. truncate: cuts longer strings and aligns right; with 0, strings are whole and aligned left."""
    if not names:
        return "\n".join(["++", "||", "++", *["||"] * len(rows), "++"]) + "\n"
    cells = [[_escaped(n) for n in names], *([_cut(c, truncate) for c in row] for row in rows)]
    widths = [max(_LEAST_WIDTH, *(_width(row[i]) for row in cells)) for i in range(len(names))]
    rule = "+" + "".join("-" * w + "+" for w in widths)
    lines = [
        "|" + "".join(f"{_padded(c, w, truncate > 0)}|" for c, w in zip(r, widths, strict=True))
        for r in cells
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule]) + "\n"


def vertical_text(names: Sequence[str], rows: Sequence[Sequence[str]], truncate: int) -> str:
    """Format rows with one line per value."""
    if not rows:
        return "(0 rows)\n"
    escaped_names = [_escaped(n) for n in names]
    cells = [[_cut(c, truncate) for c in row] for row in rows]
    left = max(_LEAST_WIDTH, *(_width(n) for n in escaped_names))
    right = max(_LEAST_WIDTH, *(_width(c) for row in cells for c in row))
    lines = []
    for i, row in enumerate(cells):
        lines.append(f"-RECORD {i}".ljust(left + right + 5, "-"))
        lines += [
            f" {_padded(n, left)} | {_padded(c, right)} " for n, c in zip(escaped_names, row, strict=True)
        ]
    return "\n".join(lines) + "\n"


_ESCAPES = str.maketrans(
    {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b", "\v": "\\v", "\a": "\\a"}
)


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _cut(text: str, truncate: int) -> str:
    text = _escaped(text)
    if 0 < truncate < len(text):
        return text[:truncate] if truncate < 4 else text[: truncate - 3] + "..."
    return text


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _padded(text: str, width: int, right: bool = False) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def nested_text(value: Any, dtype: pa.DataType) -> str:
    """Format an array, a map or a struct, and the values in it, which the engine cannot cast to strings, like Spark."""
    if value is None:
        return "NULL"
    if pt.is_map(dtype):
        pairs = (f"{nested_text(k, dtype.key_type)} -> {nested_text(v, dtype.item_type)}" for k, v in value)
        return "{" + ", ".join(pairs) + "}"
    if pt.is_list(dtype):
        return "[" + ", ".join(nested_text(v, dtype.value_type) for v in value) + "]"
    if pt.is_struct(dtype):
        return "{" + ", ".join(nested_text(value[f.name], f.type) for f in dtype) + "}"
    return _plain_text(value, dtype)


def _plain_text(value: Any, dtype: pa.DataType) -> str:
    """Format a value that is not nested."""
    if pt.is_decimal(dtype):
        return f"{value:f}"
    if pt.is_floating(dtype):
        return java_float(value) if pt.is_float32(dtype) else java_double(value)
    match value:
        case bool():
            return str(value).lower()
        case bytes():
            return "[" + " ".join(f"{byte:02X}" for byte in value) + "]"
        case dt.timedelta():
            return interval_text(IntervalLiteral(value // dt.timedelta(microseconds=1), "DAY", "SECOND"))
        case dt.datetime():
            text = str(value.replace(tzinfo=None))
            return text.rstrip("0") if value.microsecond else text
    return str(value)


def schema_tree(schema: pa.Schema) -> str:
    """The tree that ``printSchema`` prints."""
    return (
        "\n".join(["root", *(line for f in schema for line in _field(f.name, f.type, f.nullable, " |"))])
        + "\n"
    )


def _field(name: str, dtype: pa.DataType, nullable: bool, prefix: str) -> list[str]:
    return [
        f"{prefix}-- {name}: {_tree_name(dtype)} (nullable = {_flag(nullable)})",
        *_nested_fields(dtype, prefix + "    |"),
    ]


def _nested_fields(dtype: pa.DataType, prefix: str) -> list[str]:
    if pt.is_map(dtype):
        item = dtype.item_field
        return [
            f"{prefix}-- key: {_tree_name(dtype.key_type)}",
            *_nested_fields(dtype.key_type, prefix + "    |"),
            f"{prefix}-- value: {_tree_name(item.type)} (valueContainsNull = {_flag(item.nullable)})",
            *_nested_fields(item.type, prefix + "    |"),
        ]
    if pt.is_list(dtype):
        item = dtype.value_field
        return [
            f"{prefix}-- element: {_tree_name(item.type)} (containsNull = {_flag(item.nullable)})",
            *_nested_fields(item.type, prefix + "    |"),
        ]
    if pt.is_struct(dtype):
        return [line for f in dtype for line in _field(f.name, f.type, f.nullable, prefix)]
    return []


def _tree_name(dtype: pa.DataType) -> str:
    return family(dtype) if t.is_nested(dtype) else _TREE_NAMES.get(dtype) or t.spark_name(dtype)


def _flag(value: bool) -> str:
    return str(value).lower()
