"""Literals of the syntax tree as typed values."""

from __future__ import annotations

from kquery_spark.errors import KQueryError
from kquery_spark.expr import Cast, Literal
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.frontends.sql.analyzer.catalog import SessionFacts
from kquery_spark.frontends.sql.ast import expressions as ast
from kquery_spark.types import names as t

_INTEGERS = {"tinyint": t.BYTE, "smallint": t.SHORT, "int": t.INT, "bigint": t.LONG}


class BadLiteral(ValueError):
    """A literal whose text means nothing; the message says what it should have been."""


def literal(node: ast.Expression, facts: SessionFacts) -> Literal | None:
    """The typed value of a literal; None when the node is none. Raises BadLiteral for ``DATE 'x'``."""
    match node:
        case ast.NullLiteral():
            return Literal(None, t.NULL)
        case ast.BooleanLiteral():
            return Literal(node.value, t.BOOL)
        case ast.StringLiteral():
            return Literal(node.value, t.STRING)
        case ast.IntegerLiteral():
            return Literal(node.value, _INTEGERS[node.type])
        case ast.DecimalLiteral():
            return Literal(node.value, t.decimal(max(node.precision, 1), node.scale))
        case ast.FloatingLiteral():
            return Literal(node.value, t.DOUBLE if node.type == "double" else t.FLOAT)
        case ast.BinaryLiteral():
            return Literal(node.value, t.BINARY)
        case ast.TypedLiteral():
            return _typed(node, facts)
        case ast.IntervalLiteral(is_year_month=False):
            return Literal(node.amount, t.DAY_TIME)
    return None


def _typed(node: ast.TypedLiteral, facts: SessionFacts) -> Literal:
    target = {
        "date": t.DATE,
        "timestamp": t.timestamp(facts.time_zone),
        "timestamp_ntz": t.TIMESTAMP_NTZ,
    }[node.type]
    try:
        return evaluate_constant(Cast(Literal(node.text, t.STRING), target, tz=facts.time_zone))
    except KQueryError:
        raise BadLiteral(f"'{node.text}' is no {node.type.upper()}") from None
