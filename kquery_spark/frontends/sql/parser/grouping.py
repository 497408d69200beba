"""GROUP BY with ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import queries as q

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser


def parse_group_by(parser: Parser) -> q.GroupBy:
    """Read the elements after GROUP BY."""
    pos = parser.token.pos
    elements = parser.comma_separated(_parse_grouping_element)
    plain = tuple(element for element in elements if isinstance(element, e.Expression))
    for word, node in (("ROLLUP", q.Rollup), ("CUBE", q.Cube)):
        if parser.at_word("WITH", word):
            if len(plain) != len(elements):
                parser.fail(f"WITH {word} takes plain expressions only")
            parser.skip(2)
            return q.GroupBy((node(tuple((expression,) for expression in plain), pos=pos),), pos=pos)
    if parser.at_word("GROUPING", "SETS"):
        if len(plain) != len(elements):
            parser.fail("GROUPING SETS after GROUP BY takes plain expressions only")
        parser.skip(2)
        parser.expect_op("(")
        sets = parser.comma_separated(_parse_grouping_set)
        parser.expect_op(")", " to close GROUPING SETS")
        return q.GroupBy(elements, sets, pos=pos)
    return q.GroupBy(elements, pos=pos)


def _parse_grouping_element(parser: Parser) -> q.GroupingElement:
    return _parse_grouping_analytics(parser) or parser.expression()


def _parse_grouping_analytics(parser: Parser) -> q.Rollup | q.Cube | q.GroupingSets | None:
    pos = parser.token.pos
    if parser.at_any(("ROLLUP", "CUBE")) and parser.at_op("(", ahead=1):
        node = q.Rollup if parser.advance().upper == "ROLLUP" else q.Cube
        parser.advance()
        sets = tuple(group.expressions for group in parser.comma_separated(_parse_grouping_set))
        parser.expect_op(")")
        return node(sets, pos=pos)
    if parser.at_word("GROUPING", "SETS") and parser.at_op("(", ahead=2):
        parser.skip(3)
        with parser.nested():
            elements = parser.comma_separated(_parse_nested_grouping)
        parser.expect_op(")", " to close GROUPING SETS")
        return q.GroupingSets(elements, pos=pos)
    return None


def _parse_nested_grouping(parser: Parser) -> q.Rollup | q.Cube | q.GroupingSets | q.GroupingSet:
    return _parse_grouping_analytics(parser) or _parse_grouping_set(parser)


def _parse_grouping_set(parser: Parser) -> q.GroupingSet:
    """Read ``()``, ``(a, b)`` or a single expression, which may itself start with a parenthesis."""
    pos = parser.token.pos
    if parser.at_op("(") and parser.at_op(")", ahead=1):
        parser.skip(2)
        return q.GroupingSet((), pos=pos)
    expression = parser.expression()
    parts = expression.items if isinstance(expression, e.Row) else (expression,)
    for part in parts:
        if isinstance(part, (e.Aliased, e.MultiAliased)):
            parser.fail("an alias cannot stand in GROUP BY", part.pos)
    return q.GroupingSet(parts, pos=pos)
