"""Names, stars, lambdas and function calls with DISTINCT, FILTER, WITHIN GROUP and OVER."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.parser.lookahead import at_query
from kquery_spark.frontends.sql.parser.select_items import parse_named_expression, parse_sort_item
from kquery_spark.frontends.sql.parser.token_stream import TokenStream
from kquery_spark.frontends.sql.parser.tokens import Kind
from kquery_spark.frontends.sql.parser.windows import parse_window
from kquery_spark.functions.aggregate_registry import takes_null_treatment

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser


def parse_star_except(parser: Parser, star: e.Star) -> e.Star:
    """Read ``EXCEPT (names)`` after a star, unless it is the set operation."""
    if not (parser.at_word("EXCEPT") and parser.at_op("(", ahead=1)) or at_query(
        parser, 2, through_parentheses=True
    ):
        return star
    parser.advance()
    parser.expect_op("(")
    excluded = parser.comma_separated(TokenStream.dotted_name)
    parser.expect_op(")")
    return e.Star(star.qualifier, excluded, pos=star.pos)


def parse_name_or_call(parser: Parser) -> e.Expression:
    """Read ``a.b.c``, ``t.*``, ``x -> body`` or ``f(...)``."""
    token = parser.token
    parts = [parser.name()]
    if parser.take_op("->"):
        return e.Lambda((parts[0],), parser.expression(), pos=token.pos)
    while parser.at_op("."):
        parser.advance()
        if parser.take_op("*"):
            return parse_star_except(parser, e.Star(tuple(parts), pos=token.pos))
        parts.append(parser.name("a name or * after '.'"))
    if not parser.at_op("("):
        return e.Name(tuple(parts), pos=token.pos)
    if token.upper == "IDENTIFIER" and len(parts) == 1:
        parser.fail("the IDENTIFIER clause is not supported", token.pos)
    return _parse_call(parser, tuple(parts), token.pos, token.upper if len(parts) == 1 else "")


def _parse_call(parser: Parser, name: tuple[str, ...], pos: int, keyword: str) -> e.Call:
    parser.expect_op("(")
    distinct = False
    arguments: tuple[e.Expression, ...] = ()
    nulls = None
    if not parser.at_op(")"):
        distinct = _parse_quantifier(parser) == "DISTINCT"
        argument = parse_named_expression if keyword == "STRUCT" else parse_argument
        arguments = parser.comma_separated(argument)
        takes_nulls = len(arguments) == 1 and takes_null_treatment(keyword)
        if takes_nulls and parser.take_word("IGNORE", "NULLS"):
            nulls = "IGNORE"
    parser.expect_op(")", f" to close the arguments of {'.'.join(name)}")
    within = _parse_within_group(parser)
    condition = _parse_filter(parser)
    nulls = nulls or _parse_null_treatment(parser)
    over = parse_window(parser) if _at_over(parser) and parser.advance() else None
    return e.Call(name, arguments, distinct, within, condition, nulls, over, pos=pos)


def _parse_quantifier(parser: Parser) -> str:
    """Read DISTINCT or ALL before arguments; returns "" if the word is a column or a function instead."""
    is_quantifier = parser.at_any(("DISTINCT", "ALL")) and not parser.at_op(")", ",", ".", "(", ahead=1)
    if is_quantifier or (parser.at_word("DISTINCT") and parser.at_op("(", ahead=1)):
        return parser.advance().upper
    return ""


def _parse_null_treatment(parser: Parser) -> str | None:
    """Read ``IGNORE NULLS`` or ``RESPECT NULLS`` or nothing."""
    for option in ("IGNORE", "RESPECT"):
        if parser.take_word(option, "NULLS"):
            return option
    return None


def parse_argument(parser: Parser) -> e.Expression:
    """Read one argument, by position or as ``name => value``."""
    token = parser.token
    if token.kind in (Kind.WORD, Kind.QUOTED) and parser.at_op("=>", ahead=1):
        parser.skip(2)
        return e.NamedArgument(token.value, parser.expression(), pos=token.pos)
    return parser.expression()


def _parse_within_group(parser: Parser) -> tuple[e.SortItem, ...]:
    if not parser.take_word("WITHIN", "GROUP"):
        return ()
    parser.expect_op("(")
    parser.expect_word("ORDER")
    parser.expect_word("BY")
    items = parser.comma_separated(parse_sort_item)
    parser.expect_op(")")
    return items


def _parse_filter(parser: Parser) -> e.Expression | None:
    if not (parser.at_word("FILTER") and parser.at_op("(", ahead=1)):
        return None
    parser.advance()
    parser.expect_op("(")
    parser.expect_word("WHERE", " in FILTER")
    condition = parser.expression()
    parser.expect_op(")", " to close FILTER")
    return condition


def _at_over(parser: Parser) -> bool:
    after = parser.peek()
    is_name = after.kind in (Kind.WORD, Kind.QUOTED)
    return parser.at_word("OVER") and (is_name or parser.at_op("(", ahead=1))
