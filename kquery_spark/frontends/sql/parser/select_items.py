"""Items of the select list and of ORDER BY."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.parser.aliases import parse_column_alias

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser


def parse_named_expression(parser: Parser) -> e.Expression:
    """Read an expression with an optional alias or list of aliases."""
    expression = parser.expression()
    pos = parser.token.pos
    if parser.at_op("(") or (parser.at_word("AS") and parser.at_op("(", ahead=1)):
        parser.take_word("AS")
        return e.MultiAliased(expression, parser.names_in_parentheses("an alias"), pos=pos)
    alias = parse_column_alias(parser)
    return expression if alias is None else e.Aliased(expression, alias, pos=pos)


def parse_sort_item(parser: Parser) -> e.SortItem:
    """Read one item of ORDER BY."""
    pos = parser.token.pos
    expression = parser.expression()
    ascending = parser.take_word("ASC") or not parser.take_word("DESC")
    nulls_first = ascending
    if parser.take_word("NULLS"):
        nulls_first = parser.take_word("FIRST")
        if not nulls_first:
            parser.expect_word("LAST", " or FIRST after NULLS")
    return e.SortItem(expression, ascending, nulls_first, pos=pos)
