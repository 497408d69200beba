"""The SQL frontend: Spark's dialect, from text to an unresolved syntax tree and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kquery_spark.errors import SqlError
from kquery_spark.frontends.sql.ast.expressions import Expression
from kquery_spark.frontends.sql.ast.node import Node, walk
from kquery_spark.frontends.sql.ast.queries import Query
from kquery_spark.frontends.sql.ast.types import TypeNode
from kquery_spark.frontends.sql.parser import data_types, queries, select_items
from kquery_spark.frontends.sql.parser.parser import Parser
from kquery_spark.frontends.sql.printer import to_sql

__all__ = ["MAX_DEPTH", "parse_expression", "parse_query", "parse_type", "to_sql"]

#: The maximum depth of a syntax tree. Each operator of a chain (``a || b``) adds a level; chains of AND or OR are flat.
MAX_DEPTH = 250

N = TypeVar("N", bound=Node)


def parse_query(sql: str) -> Query:
    """The tree of one query, which may end in one semicolon. Raises SqlError with a position."""
    return _parse(sql, queries.parse_statement)


def parse_expression(sql: str) -> Expression:
    """The tree of one expression, alias allowed as in a select list. Raises SqlError."""
    return _parse(sql, select_items.parse_named_expression)


def parse_type(sql: str) -> TypeNode:
    """The tree of one data type such as ``array<decimal(10, 2)>``. Raises SqlError."""
    return _parse(sql, data_types.parse_data_type)


def _parse(sql: str, rule: Callable[[Parser], N]) -> N:
    parser = Parser(sql)
    try:
        tree = rule(parser)
    except RecursionError:
        # If the caller's stack is already deep, Python's recursion limit is reached before the parser's nesting limit.
        raise SqlError("this is nested too deeply", sql, parser.token.pos) from None
    parser.expect_end()
    for node, depth in walk(tree):
        if depth > MAX_DEPTH:
            raise SqlError(f"this is nested too deeply: more than {MAX_DEPTH} operators", sql, node.pos)
    return tree
