"""Prints literals in column names: numbers, dates, timestamps, intervals."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

from kquery_spark.frontends.sql.analyzer.naming.writer import PRINTERS, NameWriter
from kquery_spark.frontends.sql.ast import expressions as ast

_MOMENT = re.compile(r"(\d{4})-(\d\d?)(?:-(\d\d?)(?:[ T](\d\d?):(\d\d?)(?::(\d\d?)(\.\d+)?)?)?)?")


@PRINTERS.handles(ast.StringLiteral)
def string(writer: NameWriter, node: ast.StringLiteral) -> str:
    """A string without quotes."""
    return node.value


@PRINTERS.handles(ast.NullLiteral)
def null(writer: NameWriter, node: ast.NullLiteral) -> str:
    """``NULL``."""
    return "NULL"


@PRINTERS.handles(ast.BooleanLiteral)
def boolean(writer: NameWriter, node: ast.BooleanLiteral) -> str:
    """``true`` or ``false``."""
    return "true" if node.value else "false"


@PRINTERS.handles(ast.IntegerLiteral)
def integer(writer: NameWriter, node: ast.IntegerLiteral) -> str:
    """A whole number without its suffix."""
    return str(node.value)


@PRINTERS.handles(ast.DecimalLiteral)
def decimal(writer: NameWriter, node: ast.DecimalLiteral) -> str:
    """A decimal with all its digits."""
    return f"{node.value:f}"


@PRINTERS.handles(ast.FloatingLiteral)
def floating(writer: NameWriter, node: ast.FloatingLiteral) -> str:
    """A float or double as Java prints it."""
    return java_float(node.value) if node.type == "float" else java_double(node.value)


@PRINTERS.handles(ast.BinaryLiteral)
def binary(writer: NameWriter, node: ast.BinaryLiteral) -> str:
    """``X'1F'``."""
    return f"X'{node.value.hex().upper()}'"


@PRINTERS.handles(ast.TypedLiteral)
def typed_literal(writer: NameWriter, node: ast.TypedLiteral) -> str:
    """``DATE '2020-01-31'``."""
    return f"{node.type.upper()} '{_moment_text(node)}'"


@PRINTERS.handles(ast.IntervalLiteral)
def interval(writer: NameWriter, node: ast.IntervalLiteral) -> str:
    """``INTERVAL '1' DAY``."""
    return interval_text(node)


def _moment_text(node: ast.TypedLiteral) -> str:
    """Print the value of a date or timestamp; a timestamp with a zone is printed as written."""
    match = _MOMENT.fullmatch(node.text.strip())
    if match is None:
        return node.text
    *fields, fraction = match.groups()
    year, month, day, hour, minute, second = (
        int(f) if f else 1 if i < 3 else 0 for i, f in enumerate(fields)
    )
    date = f"{year:04d}-{month:02d}-{day:02d}"
    if node.type.lower() == "date":
        return date
    return f"{date} {hour:02d}:{minute:02d}:{second:02d}" + (fraction or "")[:7].rstrip("0").rstrip(".")


def interval_text(node: ast.IntervalLiteral) -> str:
    """An interval as Spark shows it: ``INTERVAL '1 02:03:04' DAY TO SECOND``."""
    unit = node.start if node.start == node.end else f"{node.start} TO {node.end}"
    sign, size = ("-" if node.amount < 0 else ""), abs(node.amount)
    if node.is_year_month:
        years, months = divmod(size, 12)
        text = {"YEAR": str(years), "MONTH": str(size)}.get(unit, f"{years}-{months}")
        return f"INTERVAL '{sign}{text}' {unit}"
    sizes = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
    fields = list(sizes)
    text = ""
    for field in fields[fields.index(node.start) : fields.index(node.end) + 1]:
        count, size = divmod(size, sizes[field])
        if field == node.start:
            text = str(count) if field == "DAY" else f"{count:02d}"
        else:
            text += f"{' ' if field == 'HOUR' else ':'}{count:02d}"
    if node.end == "SECOND" and size:
        text += f".{size:06d}".rstrip("0")
    return f"INTERVAL '{sign}{text}' {unit}"


def java_float(value: float) -> str:
    """Print a float with the digits of a float, not with those of the equal double."""
    return java_double(float(str(np.float32(value))))


def java_double(value: float) -> str:
    """A double as Java prints it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    size = abs(value)
    if value == 0 or 1e-3 <= size < 1e7:
        return repr(float(value))
    mantissa, exponent = f"{value:e}".split("e")
    digits = repr(float(value))
    if "e" in digits:
        mantissa, exponent = digits.split("e")
    else:
        sign, number, power = Decimal(digits).normalize().as_tuple()
        text = "".join(map(str, number))
        mantissa = f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}"
        exponent = str(int(power) + len(text) - 1)
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"
