"""The parser: a token stream with methods for the rules that most other rules use."""

from __future__ import annotations

from kquery_spark.frontends.sql.ast.expressions import Expression
from kquery_spark.frontends.sql.ast.queries import Query
from kquery_spark.frontends.sql.parser.expressions import parse_expression, parse_value_expression
from kquery_spark.frontends.sql.parser.queries import parse_query
from kquery_spark.frontends.sql.parser.token_stream import TokenStream


class Parser(TokenStream):
    """Parses one SQL string.

    Expressions contain queries and queries contain expressions. To avoid cyclic imports, the modules of the rules call these
    methods for both, and import each other in one direction only.
    """

    def expression(self) -> Expression:
        """Read one expression of the boolean layer."""
        return parse_expression(self)

    def expressions(self) -> tuple[Expression, ...]:
        """Read one or more expressions separated by commas."""
        return self.comma_separated(parse_expression)

    def value_expression(self) -> Expression:
        """Read one expression of the value layer: no AND, OR, NOT or predicate outside parentheses."""
        return parse_value_expression(self)

    def query(self) -> Query:
        """Read one query."""
        return parse_query(self)

    def query_in_parentheses(self) -> Query:
        """Read ``(query)``."""
        self.expect_op("(")
        query = parse_query(self)
        self.expect_op(")", " after the subquery")
        return query
