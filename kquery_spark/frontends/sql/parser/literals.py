"""Literals: strings, numbers, and strings after a type, such as ``DATE '...'`` and ``X'...'``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.parser.literal_values import number_literal
from kquery_spark.frontends.sql.parser.tokens import Kind

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser

_DATE_TYPES = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
}
_HEXADECIMAL = re.compile("[0-9A-Fa-f]*")


def parse_string(parser: Parser) -> e.Expression:
    """Read one or more adjacent strings, which form one literal."""
    pos, parts = parser.token.pos, []
    while parser.token.kind is Kind.STRING:
        parts.append(parser.advance().value)
    return e.StringLiteral("".join(parts), pos=pos)


def parse_number(parser: Parser) -> e.Expression:
    """Read a number with an optional minus sign."""
    pos = parser.token.pos
    negative = parser.take_op("-")
    literal = number_literal(parser.advance().value, pos, negative=negative)
    if isinstance(literal, str):
        parser.fail(literal, pos)
    return literal


def parse_typed_literal(parser: Parser) -> e.Expression:
    """Read ``DATE '...'``, ``TIMESTAMP '...'`` or ``X'...'``."""
    word = parser.advance()
    text = parser.advance().value
    if word.upper in _DATE_TYPES:
        return e.TypedLiteral(_DATE_TYPES[word.upper], text, pos=word.pos)
    if word.upper == "X":
        if not _HEXADECIMAL.fullmatch(text):
            parser.fail(f"'{text}' is not hexadecimal", word.pos)
        return e.BinaryLiteral(bytes.fromhex("0" * (len(text) % 2) + text), pos=word.pos)
    parser.fail(f"literals of type {word.value} are not supported", word.pos)
