"""TABLESAMPLE after a table or after a query in parentheses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.parser.aliases import at_table_clause, parse_table_alias
from kquery_spark.frontends.sql.parser.tokens import Kind

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser


def at_sample(parser: Parser) -> bool:
    """True if TABLESAMPLE is next as a clause, not as an alias."""
    return parser.at_word("TABLESAMPLE") and at_table_clause(parser)


def parse_sample(parser: Parser, relation: r.Relation) -> r.Sampled:
    """Read ``TABLESAMPLE (size ROWS)`` or ``(size PERCENT)``; sampling of buckets is not supported."""
    pos = parser.advance().pos
    parser.expect_op("(")
    if parser.at_word("BUCKET") and parser.peek().kind is Kind.NUMBER:
        parser.fail("TABLESAMPLE of buckets draws at random, which is not supported; use ROWS")
    size: e.Expression = parser.expression()
    if not parser.at_any(("ROWS", "PERCENT")):
        parser.fail_expected("ROWS or PERCENT")
    unit = parser.advance().upper
    parser.expect_op(")", " to close TABLESAMPLE")
    if parser.take_word("REPEATABLE"):
        parser.expect_op("(")
        parser.integer("a seed")
        parser.expect_op(")")
    return r.Sampled(relation, size, unit, parse_table_alias(parser), pos=pos)
