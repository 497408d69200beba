"""SELECT with its clauses, hints and named windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.parser.grouping import parse_group_by
from kquery_spark.frontends.sql.parser.lookahead import must_be_name
from kquery_spark.frontends.sql.parser.primaries import parse_primary
from kquery_spark.frontends.sql.parser.relations import parse_from, parse_lateral_views
from kquery_spark.frontends.sql.parser.select_items import parse_named_expression
from kquery_spark.frontends.sql.parser.windows import parse_window

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser


def parse_select(parser: Parser) -> q.Select:
    """Read ``SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... QUALIFY ... WINDOW ...``."""
    pos = parser.advance().pos
    hints: tuple[q.Hint, ...] = ()
    while parser.at_op("/*+"):
        hints += _parse_hints(parser)
    distinct = _parse_select_quantifier(parser)
    items = parser.comma_separated(parse_named_expression)
    relation: r.Relation | None = None
    views: tuple[r.LateralView, ...] = ()
    if parser.take_word("FROM"):
        relation = parse_from(parser)
    if parser.at_word("LATERAL", "VIEW"):
        views = parse_lateral_views(parser)
    where = parser.expression() if parser.take_word("WHERE") else None
    group_by = parse_group_by(parser) if parser.take_word("GROUP", "BY") else None
    having = parser.expression() if parser.take_word("HAVING") else None
    qualify = parser.expression() if parser.take_word("QUALIFY") else None
    windows = parse_named_windows(parser)
    return q.Select(
        items, relation, views, where, group_by, having, qualify, windows, distinct, hints, pos=pos
    )


def parse_quantifier(parser: Parser) -> str | None:
    """Read ALL or DISTINCT if one is next, and return it."""
    return parser.advance().upper if parser.at_any(("ALL", "DISTINCT")) else None


def _parse_select_quantifier(parser: Parser) -> bool:
    """Read ALL or DISTINCT unless the token after it shows that the word is a column name; return True for DISTINCT."""
    if not parser.at_any(("ALL", "DISTINCT")) or must_be_name(parser):
        return False
    return parse_quantifier(parser) == "DISTINCT"


def _parse_hints(parser: Parser) -> tuple[q.Hint, ...]:
    parser.expect_op("/*+")
    hints = [_parse_hint(parser)]
    while not parser.at_op("*/"):
        parser.take_op(",")
        hints.append(_parse_hint(parser))
    parser.advance()
    return tuple(hints)


def _parse_hint(parser: Parser) -> q.Hint:
    pos = parser.token.pos
    name = parser.name("a hint")
    arguments: tuple[e.Expression, ...] = ()
    if parser.take_op("("):
        arguments = parser.comma_separated(parse_primary)
        parser.expect_op(")", " to close the hint")
    return q.Hint(name, arguments, pos=pos)


def parse_named_windows(parser: Parser) -> tuple[q.NamedWindow, ...]:
    """Read ``WINDOW name AS (...), ...``, or nothing."""
    return parser.comma_separated(_parse_named_window) if parser.take_word("WINDOW") else ()


def _parse_named_window(parser: Parser) -> q.NamedWindow:
    pos = parser.token.pos
    name = parser.name("a window's name")
    parser.expect_word("AS", " after the window's name")
    return q.NamedWindow(name, parse_window(parser), pos=pos)
