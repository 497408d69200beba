"""Predicates (IS, IN, BETWEEN, LIKE and others): one function each, which reads the tokens after the left operand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.parser.lookahead import at_query
from kquery_spark.frontends.sql.parser.tokens import Kind

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser


def parse_predicate(parser: Parser, left: e.Expression) -> e.Expression:
    """Read ``IS ...``, ``[NOT] IN ...`` or another predicate after ``left``."""
    pos = parser.token.pos
    negated = parser.take_word("NOT")
    return _HANDLERS[parser.advance().upper](parser, left, negated, pos)


def _parse_is(parser: Parser, left: e.Expression, _: bool, pos: int) -> e.Expression:
    negated = parser.take_word("NOT")
    if parser.take_word("NULL"):
        return e.IsNull(left, negated, pos=pos)
    if parser.take_word("DISTINCT"):
        parser.expect_word("FROM", " after IS DISTINCT")
        return e.IsDistinct(left, parser.value_expression(), negated, pos=pos)
    for word, value in (("TRUE", True), ("FALSE", False), ("UNKNOWN", None)):
        if parser.take_word(word):
            return e.IsBoolean(left, value, negated, pos=pos)
    parser.fail_expected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")


def _parse_in(parser: Parser, left: e.Expression, negated: bool, pos: int) -> e.Expression:
    if parser.at_op("(") and at_query(parser, 1):
        return e.InSubquery(left, parser.query_in_parentheses(), negated, pos=pos)
    parser.expect_op("(", " after IN")
    items = parser.expressions()
    parser.expect_op(")", " after the values of IN")
    return e.InList(left, items, negated, pos=pos)


def _parse_between(parser: Parser, left: e.Expression, negated: bool, pos: int) -> e.Expression:
    low = parser.value_expression()
    parser.expect_word("AND", " after BETWEEN's lower bound")
    return e.Between(left, low, parser.value_expression(), negated, pos=pos)


def _parse_like(parser: Parser, left: e.Expression, negated: bool, pos: int, *, kind: str) -> e.Expression:
    if kind != "RLIKE" and parser.at_any(("ANY", "SOME", "ALL")) and parser.at_op("(", ahead=1):
        quantifier = "ALL" if parser.advance().upper == "ALL" else "ANY"
        parser.advance()
        patterns = parser.expressions()
        parser.expect_op(")", f" after the patterns of {kind} {quantifier}")
        return e.LikeQuantified(left, patterns, kind, quantifier, negated, pos=pos)
    like = e.Like(left, parser.value_expression(), kind, None, negated, pos=pos)
    if kind != "RLIKE" and parser.take_word("ESCAPE"):
        if parser.token.kind is not Kind.STRING or len(parser.token.value) != 1:
            parser.fail("ESCAPE takes a string of one character")
        return replace(like, escape=parser.advance().value)
    return like


_Handler = Callable[["Parser", e.Expression, bool, int], e.Expression]

#: The function for each keyword of a predicate. Its arguments: the parser after the keyword, the left operand, True if NOT
#: precedes the keyword, and the position.
_HANDLERS: dict[str, _Handler] = {
    "IS": _parse_is,
    "IN": _parse_in,
    "BETWEEN": _parse_between,
    "LIKE": partial(_parse_like, kind="LIKE"),
    "ILIKE": partial(_parse_like, kind="ILIKE"),
    "RLIKE": partial(_parse_like, kind="RLIKE"),
    "REGEXP": partial(_parse_like, kind="RLIKE"),
}
PREDICATES = frozenset(_HANDLERS)
#: Predicates that NOT can precede.
NEGATABLE_PREDICATES = PREDICATES - {"IS"}
