"""Converts Python values to SQL literals, and types to SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from kquery_spark.errors import PlanError, type_name
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.types import decimals

_INT_RANGE = 2**31
_LONG_RANGE = 2**63


def literal_node(value: Any) -> ast.Expression:
    """Return the syntax tree of a constant; raises PlanError if SQL has no constants of its type."""
    match value:
        case None:
            return ast.NullLiteral()
        case bool():
            return ast.BooleanLiteral(value)
        case int() if -_LONG_RANGE <= value < _LONG_RANGE:
            is_int = -_INT_RANGE <= value < _INT_RANGE
            return ast.IntegerLiteral(value, "int" if is_int else "bigint")
        case float():
            return ast.FloatingLiteral(value, "double")
        case str():
            return ast.StringLiteral(value)
        case bytes():
            return ast.BinaryLiteral(value)
        case Decimal():
            return _decimal_literal(value)
        case dt.datetime():
            return ast.TypedLiteral("timestamp", value.isoformat(" "))
        case dt.date():
            return ast.TypedLiteral("date", value.isoformat())
        case dt.timedelta():
            return ast.IntervalLiteral(value // dt.timedelta(microseconds=1), "DAY", "SECOND")
    raise PlanError(f"a constant cannot have the type {type_name(value)}")


def _decimal_literal(value: Decimal) -> ast.Expression:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise PlanError(f"{value} is not a finite decimal number")
    # int() raises an error for thousands of digits, and 10 ** exponent may not fit into memory.
    if max(len(digits), exponent) <= decimals.MAX_PRECISION:
        unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
        literal = ast.DecimalLiteral(unscaled, max(-exponent, 0))
        if literal.precision <= decimals.MAX_PRECISION:
            return ast.Unary("-", literal) if sign else literal
    raise PlanError(
        f"[DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION] {value} has more than {decimals.MAX_PRECISION} digits"
    )


def type_text(dtype: Any) -> str:
    """Return the SQL of a type, which is a string or a PySpark type."""
    text = dtype if isinstance(dtype, str) else getattr(dtype, "simpleString", lambda: None)()
    if not isinstance(text, str):
        raise PlanError(f"a type must be an SQL string or a PySpark type, not {type_name(dtype)}")
    return text
