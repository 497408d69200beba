"""The Pratt parser of expressions: binding powers and a table of infix operators.

Every infix operator has one entry in ``_INFIX``: its binding power, a ceiling for the operator after it, and the function
that reads it with its right operand. Example: in ``1 + 2 * 3 = 7``, the parser reads ``1``; then ``+``, whose right operand
takes everything that binds more tightly, ``2 * 3``; then ``=``, whose left operand is the sum.

The ceiling rejects what Spark's grammar does not allow. In ``a IS NULL = b``, the predicate IS has the ceiling AND, so
``=``, which binds more tightly than AND, cannot follow; the loop ends before it, and the caller reports the unexpected
token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.keywords import OPERATORS
from kquery_spark.frontends.sql.parser.lookahead import at_query, must_be_name
from kquery_spark.frontends.sql.parser.predicates import NEGATABLE_PREDICATES, PREDICATES, parse_predicate
from kquery_spark.frontends.sql.parser.primaries import parse_primary
from kquery_spark.frontends.sql.parser.tokens import Kind

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser

# Binding powers, weakest first. Spark's grammar has three layers: boolean (OR, AND, NOT), one optional
# predicate, and values. In the value layer, comparisons are left-associative operators with the weakest power (40).
OR, AND, NOT, PREDICATE, VALUE = 10, 20, 25, 30, 31
UNARY = 110


class _Infix(NamedTuple):
    """An infix operator.

    power: how tightly the operator binds its left operand. ceiling: the maximum power of an operator that may follow.
    parse: takes the left operand, reads the operator and its right operand, and returns the expression.
    """

    power: int
    ceiling: int
    parse: Callable[[Parser, e.Expression], e.Expression]


def parse_expression(parser: Parser) -> e.Expression:
    """Read one expression of the boolean layer."""
    with parser.nested():
        return _parse_operators(parser, 0)


def parse_value_expression(parser: Parser) -> e.Expression:
    """Read one expression of the value layer: no AND, OR, NOT or predicate outside parentheses."""
    with parser.nested():
        return _parse_operators(parser, VALUE)


def _parse_operators(parser: Parser, minimum: int) -> e.Expression:
    """Read a prefix, then all infix operators that bind at least as tightly as ``minimum`` and that the ceiling allows."""
    left, ceiling = _parse_prefix(parser, minimum)
    while (infix := _next_infix(parser)) is not None and minimum <= infix.power <= ceiling:
        left, ceiling = infix.parse(parser, left), infix.ceiling
    return left


def _next_infix(parser: Parser) -> _Infix | None:
    """Return the infix operator that is next, or None. NOT is one only before a predicate: ``a NOT IN (1)``."""
    token = parser.token
    if token.upper == "NOT":
        return _PREDICATE if parser.at_any(NEGATABLE_PREDICATES, ahead=1) else None
    return _INFIX.get(token.upper or token.value) if token.kind in (Kind.OP, Kind.WORD) else None


def _parse_binary(parser: Parser, left: e.Expression) -> e.Expression:
    token = parser.advance()
    operator = token.upper or token.value
    return e.Binary(operator, left, _parse_operators(parser, OPERATORS[operator] + 1), pos=token.pos)


def _parse_and(parser: Parser, left: e.Expression) -> e.Expression:
    return e.And(_parse_terms(parser, left, "AND", AND), pos=left.pos)


def _parse_or(parser: Parser, left: e.Expression) -> e.Expression:
    return e.Or(_parse_terms(parser, left, "OR", OR), pos=left.pos)


def _parse_terms(parser: Parser, first: e.Expression, word: str, power: int) -> tuple[e.Expression, ...]:
    """Read ``AND b AND c``, and return all terms with the first one; a chain of one connective becomes one node."""
    terms = [first]
    while parser.take_word(word):
        terms.append(_parse_operators(parser, power + 1))
    return tuple(terms)


def _parse_prefix(parser: Parser, minimum: int) -> tuple[e.Expression, int]:
    """Read the start of an expression; the second result is the ceiling for the operator after it."""
    token = parser.token
    if (token.upper == "NOT" and not must_be_name(parser)) or parser.at_op("!"):
        if minimum > NOT:
            parser.fail("NOT must stand in parentheses here")
        parser.advance()
        with parser.nested():
            return e.Not(_parse_operators(parser, NOT), pos=token.pos), AND
    if _at_exists(parser):
        if minimum > PREDICATE:
            parser.fail("EXISTS must stand in parentheses here")
        parser.advance()
        return e.Exists(parser.query_in_parentheses(), pos=token.pos), AND
    if parser.at_op("-", "+", "~"):
        return _parse_signed(parser), UNARY
    operand = parse_primary(parser)
    return operand, 0 if isinstance(operand, (e.Star, e.Lambda)) else UNARY


def _at_exists(parser: Parser) -> bool:
    """True if EXISTS is next with a subquery, not as the name of a function."""
    is_call = parser.at_word("EXISTS") and parser.at_op("(", ahead=1)
    return is_call and at_query(parser, 2, through_parentheses=True)


def _parse_signed(parser: Parser) -> e.Expression:
    token = parser.token
    if token.value == "-" and parser.peek().kind is Kind.NUMBER:
        # The sign is part of the literal, so the smallest integers can be written, and -1::int casts -1.
        return parse_primary(parser)
    parser.advance()
    with parser.nested():
        return e.Unary(token.value, _parse_operators(parser, UNARY), pos=token.pos)


# Only AND and OR can follow a predicate, not another predicate or an operator.
_PREDICATE = _Infix(PREDICATE, AND, parse_predicate)
_INFIX: dict[str, _Infix] = {
    **{operator: _Infix(power, power, _parse_binary) for operator, power in OPERATORS.items()},
    **dict.fromkeys(PREDICATES, _PREDICATE),
    "AND": _Infix(AND, AND, _parse_and),
    "OR": _Infix(OR, OR, _parse_or),
}
