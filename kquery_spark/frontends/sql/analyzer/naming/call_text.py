"""Prints function calls, TRIM, EXTRACT and windows in column names."""

from __future__ import annotations

from dataclasses import replace

from kquery_spark.frontends.sql.analyzer.naming.function_text import (
    default_arguments,
    function_name_text,
    special_call_text,
)
from kquery_spark.frontends.sql.analyzer.naming.writer import PRINTERS, NameWriter
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.frontends.sql.ast import windows as window_ast
from kquery_spark.functions.aggregate.windows import aggregate_of, window_function
from kquery_spark.functions.aggregate_registry import takes_null_treatment
from kquery_spark.functions.call_form import trim_function
from kquery_spark.functions.special_forms import time_window_function
from kquery_spark.types import names as t


@PRINTERS.handles(ast.Call)
def call(writer: NameWriter, node: ast.Call) -> str:
    """A function call with DISTINCT, FILTER and OVER."""
    name = node.name[-1].lower()
    if time_window_function(name) is not None and node.over is None:
        return name
    if len(node.arguments) == 2 and takes_null_treatment(aggregate_of(name)):
        # Spark does not show whether NULLs are ignored
        node = replace(node, arguments=node.arguments[:1])
    strings = [writer.text(a) for a in node.arguments]
    special = special_call_text(name, strings)
    if special is not None:
        return special
    function = function_name_text(name, ignores_nulls=node.nulls == "IGNORE")
    text = f"{function}({_arguments(writer, name, node, strings)})"
    if node.filter is not None:
        text += f" FILTER (WHERE {writer.text(node.filter)})"
    spec = None if node.over is None else writer.context.window_spec(node.over)
    if spec is not None:
        text += f" OVER ({_window(writer, spec, name, node)})"
    return text


def _arguments(writer: NameWriter, name: str, node: ast.Call, strings: list[str]) -> str:
    """Print DISTINCT and the arguments, including those that Spark adds."""
    written = ", ".join(strings)
    if node.distinct and isinstance(node.arguments[0], ast.Star):
        written = writer.context.star_text()
    return f"{'DISTINCT ' if node.distinct else ''}{written}{default_arguments(name, len(node.arguments))}"


@PRINTERS.handles(ast.Extract)
def extract(writer: NameWriter, node: ast.Extract) -> str:
    """``extract(field FROM x)``."""
    return f"extract({node.field} FROM {writer.text(node.source)})"


@PRINTERS.handles(ast.Trim)
def trim(writer: NameWriter, node: ast.Trim) -> str:
    """Print TRIM, which is an ordinary call if it has no characters."""
    side = node.side.upper() or "BOTH"
    source = writer.text(node.source)
    if node.characters is not None:
        return f"TRIM({side} {writer.text(node.characters)} FROM {source})"
    return f"{trim_function(side)}({source})"


def _window(writer: NameWriter, spec: window_ast.WindowSpec, name: str, node: ast.Call) -> str:
    parts = []
    if spec.partition_by:
        parts.append(f"PARTITION BY {writer.comma_separated(spec.partition_by)}")
    if spec.order_by:
        keys = ", ".join(
            f"{writer.text(s.expression)} {'ASC' if s.ascending else 'DESC'} "
            f"NULLS {'FIRST' if s.nulls_first else 'LAST'}"
            for s in spec.order_by
        )
        parts.append(f"ORDER BY {keys}")
    if spec.frame is None:
        parts.append(_default_frame(writer, spec, name, node))
    else:
        parts.append(_frame(writer, spec, spec.frame))
    return " ".join(parts)


def _frame(writer: NameWriter, spec: window_ast.WindowSpec, frame: window_ast.WindowFrame) -> str:
    """Print a frame as written."""
    is_range = frame.unit.upper() == "RANGE"
    key = spec.order_by[0].expression if spec.order_by and is_range else None
    return f"{frame.unit} BETWEEN {_bound(writer, frame.start, key)} AND {_bound(writer, frame.end, key)}"


def _default_frame(writer: NameWriter, spec: window_ast.WindowSpec, name: str, node: ast.Call) -> str:
    """Print the default frame that Spark adds to a call."""
    entry = window_function(name)
    if entry is not None and entry.frame_text:
        offset = writer.text(node.arguments[1]) if len(node.arguments) > 1 else "1"
        return entry.frame_text.format(offset=offset)
    if spec.order_by:
        return "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def _bound(writer: NameWriter, bound: window_ast.FrameBound, key: ast.Expression | None) -> str:
    """Print a bound of a frame. key: the sort key of a RANGE frame."""
    if bound.offset is None:
        return bound.kind
    offset = writer.text(bound.offset)
    if bound.kind == "PRECEDING":
        # Spark negates the offset, and shows that when it casts it to the key's type
        is_cast = key is not None and _needs_cast(writer, bound.offset, key)
        return f"(- {offset}) FOLLOWING" if is_cast else f"{offset} PRECEDING"
    return f"{offset} FOLLOWING"


def _needs_cast(writer: NameWriter, offset: ast.Expression, key: ast.Expression) -> bool:
    offset_type, key_type = writer.context.dtype_of(offset), writer.context.dtype_of(key)
    return (
        offset_type is not None
        and t.is_numeric(offset_type)
        and t.is_numeric(key_type)
        and offset_type != key_type
    )
