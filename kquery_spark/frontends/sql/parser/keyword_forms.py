"""Expressions with a syntax of their own that start with a keyword: CASE, CAST, EXTRACT, TRIM, SUBSTRING and others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.parser.calls import parse_name_or_call
from kquery_spark.frontends.sql.parser.data_types import parse_data_type
from kquery_spark.frontends.sql.parser.interval_literals import at_interval, parse_interval
from kquery_spark.frontends.sql.parser.literals import parse_typed_literal
from kquery_spark.frontends.sql.parser.lookahead import must_be_name, words_in_parentheses
from kquery_spark.frontends.sql.parser.tokens import Kind
from kquery_spark.functions.registry import unit_function

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser

Form = Callable[["Parser"], e.Expression]

_UNITS = frozenset(
    """YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND""".split()  # noqa: SIM905
)


def keyword_form(parser: Parser) -> Form | None:
    """Return the function that reads the keyword form that is next; None for a name or an ordinary call."""
    word = parser.token.upper
    if word == "CASE" and not must_be_name(parser):
        return _parse_case
    if word == "INTERVAL" and at_interval(parser):
        return parse_interval
    if parser.peek().kind is Kind.STRING:
        return parse_typed_literal
    if not parser.at_op("(", ahead=1):
        return None
    unit_call = unit_function(word)
    return _FORMS.get(word) or (partial(_parse_unit_function, function=unit_call) if unit_call else None)


def _parse_case(parser: Parser) -> e.Expression:
    pos = parser.advance().pos
    operand = None if parser.at_word("WHEN") else parser.expression()
    branches = []
    while parser.at_word("WHEN"):
        when = parser.advance()
        condition = parser.expression()
        parser.expect_word("THEN", " after WHEN's condition")
        branches.append(e.When(condition, parser.expression(), pos=when.pos))
    if not branches:
        parser.fail_expected("WHEN")
    otherwise = parser.expression() if parser.take_word("ELSE") else None
    parser.expect_word("END", " to close CASE")
    return e.CaseExpression(operand, tuple(branches), otherwise, pos=pos)


def _parse_cast(parser: Parser) -> e.Expression:
    token = parser.advance()
    parser.expect_op("(")
    operand = parser.expression()
    parser.expect_word("AS", f" in {token.upper}")
    kind = parse_data_type(parser)
    parser.expect_op(")", f" to close {token.upper}")
    return e.Cast(operand, kind, token.upper == "TRY_CAST", pos=token.pos)


def _parse_extract(parser: Parser) -> e.Expression:
    if parser.peek(3).upper != "FROM":
        return parse_name_or_call(parser)
    pos = parser.advance().pos
    parser.expect_op("(")
    field = parser.name("a field to extract")
    parser.expect_word("FROM")
    source = parser.value_expression()
    parser.expect_op(")", " to close EXTRACT")
    return e.Extract(field, source, pos=pos)


def _parse_trim(parser: Parser) -> e.Expression:
    inner_words, _ = words_in_parentheses(parser)
    if "FROM" not in inner_words:
        return parse_name_or_call(parser)
    pos = parser.advance().pos
    parser.expect_op("(")
    side = "BOTH"
    if parser.at_any(("BOTH", "LEADING", "TRAILING")) and not parser.at_op(".", ahead=1):
        side = parser.advance().upper
    characters = None if parser.at_word("FROM") else parser.value_expression()
    parser.expect_word("FROM", " in TRIM")
    source = parser.value_expression()
    parser.expect_op(")", " to close TRIM")
    return e.Trim(side, characters, source, pos=pos)


def _parse_substring(parser: Parser) -> e.Expression:
    return _parse_keyword_call(parser, "substring", ("FROM", "FOR"), 2)


def _parse_overlay(parser: Parser) -> e.Expression:
    return _parse_keyword_call(parser, "overlay", ("PLACING", "FROM", "FOR"), 3)


def _parse_position(parser: Parser) -> e.Expression:
    # Elsewhere, IN is a predicate. In POSITION, the operand before IN is read in the value layer, which excludes predicates.
    start = e.IntegerLiteral(1, "int", pos=parser.token.pos)
    return _parse_keyword_call(parser, "locate", ("IN",), 2, (start,))


def _parse_keyword_call(
    parser: Parser,
    function: str,
    words: tuple[str, ...],
    at_least: int,
    added: tuple[e.Expression, ...] = (),
) -> e.Expression:
    """Read ``f(a WORD b WORD c)`` as a call of ``function``; with commas instead of words, it is an ordinary call.

    words: the keywords between the arguments, in order. at_least: the minimum number of arguments.
    added: arguments after those that are read.
    """
    inner_words, commas = words_in_parentheses(parser)
    if words[0] not in inner_words or commas:
        return parse_name_or_call(parser)
    token = parser.advance()
    parser.expect_op("(")
    arguments = [parser.value_expression()]
    for word in words:
        if len(arguments) < at_least:
            parser.expect_word(word, f" in {token.upper}")
        elif not parser.take_word(word):
            break
        arguments.append(parser.value_expression())
    parser.expect_op(")", f" to close {token.upper}")
    return e.Call((function,), (*arguments, *added), pos=token.pos)


def _parse_unit_function(parser: Parser, function: str) -> e.Expression:
    """Read ``timestampadd(DAY, 1, x)`` as a call of ``function``; with two arguments, it is an ordinary call."""
    unit = parser.peek(2)
    _, commas = words_in_parentheses(parser)
    if unit.upper not in _UNITS or not parser.at_op(",", ahead=3) or commas != 2:
        return parse_name_or_call(parser)
    token = parser.advance()
    parser.skip(3)
    amount = parser.value_expression()
    parser.expect_op(",")
    value = parser.value_expression()
    parser.expect_op(")", f" to close {token.upper}")
    arguments = (e.DateTimeUnit(unit.upper, pos=unit.pos), amount, value)
    return e.Call((function,), arguments, pos=token.pos)


_FORMS: dict[str, Form] = {
    "CAST": _parse_cast,
    "TRY_CAST": _parse_cast,
    "EXTRACT": _parse_extract,
    "TRIM": _parse_trim,
    "SUBSTRING": _parse_substring,
    "SUBSTR": _parse_substring,
    "OVERLAY": _parse_overlay,
    "POSITION": _parse_position,
}
