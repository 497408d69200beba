"""Whole queries: WITH, set operations, ORDER BY and LIMIT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import queries as q
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.keywords import SET_OPERATORS, STATEMENT_WORDS
from kquery_spark.frontends.sql.parser.lookahead import at_query
from kquery_spark.frontends.sql.parser.relations import parse_values
from kquery_spark.frontends.sql.parser.select import parse_named_windows, parse_quantifier, parse_select
from kquery_spark.frontends.sql.parser.select_items import parse_sort_item
from kquery_spark.frontends.sql.parser.tokens import Kind

if TYPE_CHECKING:
    from kquery_spark.frontends.sql.parser.parser import Parser


def parse_statement(parser: Parser) -> q.Query:
    """Read one query with an optional semicolon; raises SqlError if more follows."""
    if parser.token.kind is Kind.END:
        parser.fail("the SQL contains no query")
    if parser.at_any(STATEMENT_WORDS):
        parser.fail(f"{parser.token.upper} is not supported: only queries are")
    query = parser.query()
    parser.take_op(";")
    parser.expect_end()
    return query


def parse_query(parser: Parser) -> q.Query:
    """Read ``[WITH ...] body [ORDER BY ...] [WINDOW ...] [LIMIT ...] [OFFSET ...]``."""
    with parser.nested():
        pos = parser.token.pos
        recursive, ctes = _parse_with(parser)
        body = _parse_set_operations(parser)
        order = parser.comma_separated(parse_sort_item) if parser.take_word("ORDER", "BY") else ()
        for word in ("CLUSTER", "DISTRIBUTE", "SORT"):
            if parser.at_word(word, "BY"):
                parser.fail(
                    f"{word} BY is not supported: the order of partitions is the engine's; use ORDER BY"
                )
        windows = parse_named_windows(parser)
        limit = offset = None
        if parser.take_word("LIMIT") and not _take_limit_all(parser):
            limit = parser.expression()
        if parser.take_word("OFFSET"):
            offset = parser.expression()
            if parser.at_word("LIMIT"):
                parser.fail("LIMIT must come before OFFSET")
        if parser.at_op("|>"):
            parser.fail("pipe syntax is not supported")
        return q.Query(body, ctes, order, windows, limit, offset, recursive, pos=pos)


def _take_limit_all(parser: Parser) -> bool:
    return not parser.at_op(".", "(", ahead=1) and parser.take_word("ALL")


def _parse_with(parser: Parser) -> tuple[bool, tuple[q.CommonTable, ...]]:
    """Read ``WITH [RECURSIVE] tables``, or nothing."""
    if not parser.take_word("WITH"):
        return False, ()
    recursive = parser.take_word("RECURSIVE")
    return recursive, parser.comma_separated(_parse_common_table)


def _parse_common_table(parser: Parser) -> q.CommonTable:
    pos = parser.token.pos
    name = parser.name("a name after WITH")
    columns: tuple[str, ...] = ()
    if parser.at_op("(") and not at_query(parser, 1):
        columns = parser.names_in_parentheses("a column's name")
    max_rounds = None
    if parser.take_word("MAX", "RECURSION"):
        parser.expect_word("LEVEL", " after MAX RECURSION")
        max_rounds = parser.integer("a number of rounds")
    parser.take_word("AS")
    return q.CommonTable(name, parser.query_in_parentheses(), columns, max_rounds, pos=pos)


def _parse_set_operations(parser: Parser) -> q.QueryBody:
    """Read UNION and EXCEPT, which associate to the left; INTERSECT binds more tightly."""
    left = _parse_intersections(parser)
    while parser.at_any(SET_OPERATORS):
        token = parser.advance()
        keep_all = parse_quantifier(parser) == "ALL"
        op = "EXCEPT" if token.upper == "MINUS" else token.upper
        left = q.SetQuery(op, left, _parse_intersections(parser), keep_all, pos=token.pos)
    return left


def _parse_intersections(parser: Parser) -> q.QueryBody:
    left = _parse_primary(parser)
    while parser.at_word("INTERSECT"):
        pos = parser.advance().pos
        keep_all = parse_quantifier(parser) == "ALL"
        left = q.SetQuery("INTERSECT", left, _parse_primary(parser), keep_all, pos=pos)
    return left


def _parse_primary(parser: Parser) -> q.QueryBody:
    pos = parser.token.pos
    if parser.at_op("("):
        query = parser.query_in_parentheses()
        # Parentheses around a body without ORDER BY, LIMIT and so on do not change its meaning.
        return query.body if query == q.Query(query.body) else query
    if parser.at_word("SELECT"):
        return parse_select(parser)
    if parser.at_word("VALUES"):
        return parse_values(parser)
    if parser.take_word("TABLE"):
        table = r.Table(parser.dotted_name("a table"), pos=pos)
        return q.Select((e.Star(pos=pos),), table, pos=pos)
    if parser.at_word("FROM"):
        parser.fail("a query cannot start with FROM here: write SELECT first")
    parser.fail_expected("SELECT, VALUES, TABLE, WITH or '('")
