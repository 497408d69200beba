"""What can follow a relation in parentheses: PIVOT, UNPIVOT, TABLESAMPLE."""

from __future__ import annotations

from kquery_spark.frontends.sql.ast import expressions as e
from kquery_spark.frontends.sql.ast import relations as r
from kquery_spark.frontends.sql.expressions import ExpressionParser
from kquery_spark.frontends.sql.tokens import Kind

_BEFORE_JOIN = ("ANTI", "CROSS", "FULL", "INNER", "LEFT", "NATURAL", "RIGHT", "SEMI")


class PivotParser(ExpressionParser):
    """Reads what makes another relation of the one before it."""

    def at_pivot(self) -> bool:
        """Whether PIVOT or UNPIVOT follows."""
        return self.at_any(("PIVOT", "UNPIVOT")) and self._is_table_clause()

    def pivoted(self, relation: r.Relation) -> r.Relation:
        """Read PIVOT or UNPIVOT."""
        return self._pivot(relation) if self.at_word("PIVOT") else self._unpivot(relation)

    def _pivot(self, relation: r.Relation) -> r.Pivot:
        pos = self.advance().pos
        self.expect_op("(")
        aggregates = self.comma_separated(self._aggregate)
        self.expect_word("FOR", " after the aggregates of PIVOT")
        columns = (
            self.names_in_parentheses("a column's name") if self.at_op("(") else (self.name("a column"),)
        )
        self._expect_in()
        values = self.comma_separated(self.named_expression)
        self.expect_op(")", " to close the values of PIVOT")
        self.expect_op(")", " to close PIVOT")
        return r.Pivot(relation, aggregates, columns, values, self._alias_of("PIVOT"), pos=pos)

    def _aggregate(self) -> e.Expression:
        """Read an aggregate with an optional alias, which FOR is only before another FOR."""
        expression = self.expression()
        if self.at_word("FOR") and not self.at_word("FOR", "FOR"):
            return expression
        pos = self.token.pos
        alias = self.column_alias()
        return expression if alias is None else e.Aliased(expression, alias, pos=pos)

    def _unpivot(self, relation: r.Relation) -> r.Unpivot:
        pos = self.advance().pos
        keeps_nulls = self.take_word("INCLUDE", "NULLS")
        if not keeps_nulls:
            self.take_word("EXCLUDE", "NULLS")
        self.expect_op("(")
        is_row = self.at_op("(")
        values = self.names_in_parentheses("a column's name") if is_row else (self.name("a column"),)
        self.expect_word("FOR", " after the value columns of UNPIVOT")
        name = self.name("a column")
        self._expect_in()
        columns = self.comma_separated(lambda: self._unpivot_columns(is_row))
        self.expect_op(")", " to close the columns of UNPIVOT")
        self.expect_op(")", " to close UNPIVOT")
        return r.Unpivot(relation, values, name, columns, keeps_nulls, self._alias_of("UNPIVOT"), pos=pos)

    def _alias_of(self, clause: str) -> str | None:
        """Read the alias of PIVOT or UNPIVOT, for which Spark takes a word before JOIN, too."""
        pos = self.token.pos
        if self.at_any(_BEFORE_JOIN) and self.peek().upper == "JOIN":
            self.fail(
                f"Spark takes {self.token.upper} for the alias of {clause} here: write one, or parentheses"
            )
        alias = self.table_alias()
        if alias is not None and alias.columns:
            self.fail(f"the alias of {clause} takes no names of columns", pos)
        return None if alias is None else alias.name

    def _expect_in(self) -> None:
        self.expect_word("IN", " before the list")
        self.expect_op("(")

    def _unpivot_columns(self, is_row: bool) -> r.UnpivotColumns:
        pos = self.token.pos
        if is_row:
            self.expect_op("(", " before columns that make one row")
            columns = self.comma_separated(self.dotted_name)
            self.expect_op(")")
        else:
            columns = (self.dotted_name(),)
        return r.UnpivotColumns(columns, self.column_alias(), pos=pos)

    def sampled(self, relation: r.Relation) -> r.Sampled:
        """Read ``TABLESAMPLE (size ROWS)`` or ``(size PERCENT)``; whatever else depends on partitions or is random."""
        pos = self.advance().pos
        self.expect_op("(")
        if self.at_word("BUCKET") and self.peek().kind is Kind.NUMBER:
            self.fail("TABLESAMPLE of buckets draws at random, which is not supported; use ROWS")
        size: e.Expression = self.expression()
        if not self.at_any(("ROWS", "PERCENT")):
            self.fail_expected("ROWS or PERCENT")
        unit = self.advance().upper
        self.expect_op(")", " to close TABLESAMPLE")
        if self.take_word("REPEATABLE"):
            self.expect_op("(")
            self.integer("a seed")
            self.expect_op(")")
        return r.Sampled(relation, size, unit, self.table_alias(), pos=pos)
