"""Primary expressions with their suffixes: literals, names, parentheses, ``.field``, ``[index]``, ``::type``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.keywords import NOT_A_COLUMN
from kquery_spark.frontends.sql.parser.calls import parse_name_or_call, parse_star_except
from kquery_spark.frontends.sql.parser.data_types import parse_data_type
from kquery_spark.frontends.sql.parser.keyword_forms import keyword_form
from kquery_spark.frontends.sql.parser.literals import parse_number, parse_string
from kquery_spark.frontends.sql.parser.lookahead import at_query
from kquery_spark.frontends.sql.parser.select_items import parse_named_expression
from kquery_spark.frontends.sql.parser.tokens import Kind

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser

_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}


def parse_primary(parser: Parser) -> e.Expression:
    """Read one primary expression."""
    operand = _parse_atom(parser)
    if isinstance(operand, (e.Lambda, e.Star)):
        return operand
    while True:
        pos = parser.token.pos
        if parser.take_op("["):
            operand = e.Subscript(operand, parser.value_expression(), pos=pos)
            parser.expect_op("]", " after the index")
        elif parser.take_op("::"):
            operand = e.Cast(operand, parse_data_type(parser), pos=pos)
        elif parser.take_op("."):
            name = parser.name("a name after '.'")
            if isinstance(operand, e.Name):
                operand = e.Name((*operand.parts, name), pos=operand.pos)
            else:
                operand = e.Field(operand, name, pos=pos)
        elif parser.at_word("COLLATE") and parser.peek().kind in (Kind.WORD, Kind.QUOTED):
            parser.fail("COLLATE is not supported")
        else:
            return operand


def _parse_atom(parser: Parser) -> e.Expression:
    token = parser.token
    if token.kind is Kind.STRING:
        return parse_string(parser)
    if token.kind is Kind.NUMBER or parser.at_op("-"):
        return parse_number(parser)
    if token.kind is Kind.QUOTED:
        return parse_name_or_call(parser)
    if token.kind is Kind.WORD:
        return _parse_word(parser)
    if parser.at_op("("):
        return _parse_parenthesis(parser)
    if parser.at_op("*"):
        parser.advance()
        return parse_star_except(parser, e.Star(pos=token.pos))
    _fail_without_expression(parser)


def _fail_without_expression(parser: Parser) -> NoReturn:
    if parser.at_op("?") or (parser.at_op(":") and parser.peek().kind is Kind.WORD):
        parser.fail("query parameters are not supported")
    if parser.at_op("/*+"):
        parser.fail("a hint can only follow SELECT")
    parser.fail_expected("an expression")


def _parse_word(parser: Parser) -> e.Expression:
    """Read a constant or a keyword form (``CASE ...``) if the tokens start one, and otherwise a name or a call."""
    token = parser.token
    if token.upper in _CONSTANTS:
        parser.advance()
        value = _CONSTANTS[token.upper]
        return e.NullLiteral(pos=token.pos) if value is None else e.BooleanLiteral(value, pos=token.pos)
    form = keyword_form(parser)
    if form is not None:
        return form(parser)
    if token.upper in NOT_A_COLUMN and not parser.at_op(".", "(", ahead=1):
        parser.fail_expected("an expression")
    return parse_name_or_call(parser)


def _parse_parenthesis(parser: Parser) -> e.Expression:
    pos = parser.token.pos
    if at_query(parser, 1):
        return e.ScalarSubquery(parser.query_in_parentheses(), pos=pos)
    if _at_lambda(parser):
        parameters = parser.names_in_parentheses()
        parser.expect_op("->")
        return e.Lambda(parameters, parser.expression(), pos=pos)
    parser.advance()
    items = parser.comma_separated(parse_named_expression)
    parser.expect_op(")")
    if len(items) > 1:
        return e.Row(items, pos=pos)
    if isinstance(items[0], (e.Aliased, e.MultiAliased)):
        parser.fail("an alias cannot stand inside parentheses", items[0].pos)
    return items[0]


def _at_lambda(parser: Parser) -> bool:
    """True if ``(x, y) ->`` is next; a single parameter is written without parentheses."""
    ahead = 1
    while parser.peek(ahead).kind in (Kind.WORD, Kind.QUOTED) and parser.at_op(",", ahead=ahead + 1):
        ahead += 2
    is_name = parser.peek(ahead).kind in (Kind.WORD, Kind.QUOTED)
    return (
        ahead > 1 and is_name and parser.at_op(")", ahead=ahead + 1) and parser.at_op("->", ahead=ahead + 2)
    )
