"""INTERVAL literals in all three forms: numbers with units, one string, or a range of units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.intervals import BadInterval, from_range, from_text, from_units, unit_of
from kquery_spark.frontends.sql.parser.tokens import Kind, Token

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser


def at_interval(parser: Parser) -> bool:
    """True if the next word, INTERVAL, starts a literal and is not a name."""
    sign = int(parser.at_op("+", "-", ahead=1))
    value, unit = parser.peek(1 + sign), parser.peek(2 + sign)
    if value.kind not in (Kind.STRING, Kind.NUMBER):
        return False
    if sign or value.kind is Kind.NUMBER:
        return unit.kind is Kind.WORD and (not sign or _unit(unit) is not None)
    return True


def parse_interval(parser: Parser) -> e.Expression:
    """Read INTERVAL and its value."""
    pos = parser.advance().pos
    try:
        return _parse_items(parser, pos)
    except BadInterval as error:
        parser.fail(str(error), pos)


def _parse_items(parser: Parser, pos: int) -> e.IntervalLiteral:
    """Read ``2 hours '3' minutes``, ``'1 day 2 hours'`` or ``'1-2' YEAR TO MONTH``."""
    items: list[tuple[str, str, bool]] = []
    while not items or _at_item(parser):
        negate = _take_sign(parser)
        is_text, text = parser.token.kind is Kind.STRING, parser.advance().value
        unit = _unit(parser.token)
        if unit is None:
            if is_text and not items and not negate:
                return from_text(text, pos)
            parser.fail_expected("a unit of the interval")
        start = parser.advance().upper
        if not items and parser.take_word("TO"):
            if not is_text:
                parser.fail("the value of an interval with TO must be a string", pos)
            return from_range(text, start, parser.name("a unit").upper(), pos, negate=negate)
        items.append((text, unit, negate))
    return from_units(items, pos)


def _take_sign(parser: Parser) -> bool:
    """Read a sign if there is one; return True for a minus."""
    negate = parser.at_op("-")
    if parser.at_op("-", "+"):
        parser.advance()
    return negate


def _at_item(parser: Parser) -> bool:
    """True if another item, such as ``2 hours`` or ``-2 hours``, is next."""
    sign = int(parser.at_op("+", "-"))
    value, unit = parser.peek(sign), parser.peek(sign + 1)
    return value.kind in (Kind.NUMBER, Kind.STRING) and _unit(unit) is not None


def _unit(token: Token) -> str | None:
    """Return the unit that a word names, or None."""
    return unit_of(token.value) if token.kind is Kind.WORD else None
