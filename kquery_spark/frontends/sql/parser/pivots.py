"""PIVOT and UNPIVOT after a relation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.parser.aliases import at_table_clause, parse_column_alias, parse_table_alias
from kquery_spark.frontends.sql.parser.select_items import parse_named_expression
from kquery_spark.frontends.sql.parser.token_stream import TokenStream

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser

_BEFORE_JOIN = ("ANTI", "CROSS", "FULL", "INNER", "LEFT", "NATURAL", "RIGHT", "SEMI")


def at_pivot(parser: Parser) -> bool:
    """True if PIVOT or UNPIVOT is next as a clause, not as an alias."""
    return parser.at_any(("PIVOT", "UNPIVOT")) and at_table_clause(parser)


def parse_pivot_clause(parser: Parser, relation: r.Relation) -> r.Relation:
    """Read PIVOT or UNPIVOT."""
    return _parse_pivot(parser, relation) if parser.at_word("PIVOT") else _parse_unpivot(parser, relation)


def _parse_pivot(parser: Parser, relation: r.Relation) -> r.Pivot:
    pos = parser.advance().pos
    parser.expect_op("(")
    aggregates = parser.comma_separated(_parse_aggregate)
    parser.expect_word("FOR", " after the aggregates of PIVOT")
    columns = (
        parser.names_in_parentheses("a column's name") if parser.at_op("(") else (parser.name("a column"),)
    )
    _expect_in(parser)
    values = parser.comma_separated(parse_named_expression)
    parser.expect_op(")", " to close the values of PIVOT")
    parser.expect_op(")", " to close PIVOT")
    return r.Pivot(relation, aggregates, columns, values, _parse_alias(parser, "PIVOT"), pos=pos)


def _parse_aggregate(parser: Parser) -> e.Expression:
    """Read an aggregate with an optional alias. The word FOR is an alias only if another FOR follows."""
    expression = parser.expression()
    if parser.at_word("FOR") and not parser.at_word("FOR", "FOR"):
        return expression
    pos = parser.token.pos
    alias = parse_column_alias(parser)
    return expression if alias is None else e.Aliased(expression, alias, pos=pos)


def _parse_unpivot(parser: Parser, relation: r.Relation) -> r.Unpivot:
    pos = parser.advance().pos
    keeps_nulls = parser.take_word("INCLUDE", "NULLS")
    if not keeps_nulls:
        parser.take_word("EXCLUDE", "NULLS")
    parser.expect_op("(")
    is_row = parser.at_op("(")
    values = parser.names_in_parentheses("a column's name") if is_row else (parser.name("a column"),)
    parser.expect_word("FOR", " after the value columns of UNPIVOT")
    name = parser.name("a column")
    _expect_in(parser)
    columns = parser.comma_separated(partial(_parse_unpivot_columns, is_row=is_row))
    parser.expect_op(")", " to close the columns of UNPIVOT")
    parser.expect_op(")", " to close UNPIVOT")
    return r.Unpivot(relation, values, name, columns, keeps_nulls, _parse_alias(parser, "UNPIVOT"), pos=pos)


def _parse_alias(parser: Parser, clause: str) -> str | None:
    """Read the alias of PIVOT or UNPIVOT. Raises SqlError for a keyword before JOIN, which Spark reads as the alias."""
    pos = parser.token.pos
    if parser.at_any(_BEFORE_JOIN) and parser.peek().upper == "JOIN":
        parser.fail(
            f"Spark takes {parser.token.upper} for the alias of {clause} here: write one, or parentheses"
        )
    alias = parse_table_alias(parser)
    if alias is not None and alias.columns:
        parser.fail(f"the alias of {clause} takes no names of columns", pos)
    return None if alias is None else alias.name


def _expect_in(parser: Parser) -> None:
    parser.expect_word("IN", " before the list")
    parser.expect_op("(")


def _parse_unpivot_columns(parser: Parser, is_row: bool) -> r.UnpivotColumns:
    pos = parser.token.pos
    if is_row:
        parser.expect_op("(", " before columns that make one row")
        columns = parser.comma_separated(TokenStream.dotted_name)
        parser.expect_op(")")
    else:
        columns = (parser.dotted_name(),)
    return r.UnpivotColumns(columns, parse_column_alias(parser), pos=pos)
