"""Aliases with and without AS: where a word is a name and where it starts the next clause."""

from __future__ import annotations

from kquery_spark.frontends.sql.ast.relations import TableAlias
from kquery_spark.frontends.sql.keywords import (
    CLAUSE_PAIRS,
    CLAUSE_WORDS,
    NOT_A_TABLE_ALIAS,
    OPERATOR_WORDS,
)
from kquery_spark.frontends.sql.tokens import Kind
from kquery_spark.frontends.sql.types import TypeParser

_VERSIONS = frozenset({"VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"})


class AliasParser(TypeParser):
    """Reads aliases."""

    def column_alias(self) -> str | None:
        """Read ``AS name``, ``name``, or nothing."""
        if self.take_word("AS"):
            return self.name("a name after AS")
        if self.token.kind is Kind.QUOTED or self._is_free_word():
            return self.advance().value
        return None

    def table_alias(self) -> TableAlias | None:
        """Read ``[AS] name [(columns)]`` or nothing."""
        pos = self.token.pos
        if self.take_word("AS"):
            if self.at_any(NOT_A_TABLE_ALIAS):
                self.fail(f"{self.token.upper} cannot be a table's alias without backticks")
        elif self.token.kind is not Kind.QUOTED and (
            not self._is_free_word() or self.at_any(NOT_A_TABLE_ALIAS) or self._is_table_clause()
        ):
            return None
        name = self.name("an alias after AS")
        columns = self.names_in_parentheses("a column's name") if self.at_op("(") else ()
        return TableAlias(name, columns, pos=pos)

    def _is_free_word(self) -> bool:
        """Return whether the next token is a word that cannot continue the query."""
        token, after = self.token, self.peek()
        if token.kind is not Kind.WORD or token.upper in OPERATOR_WORDS:
            return False
        if token.upper in CLAUSE_WORDS:
            # SELECT a limit, b: the next token shows that it does not start a clause.
            return after.kind is Kind.OP and after.value == ","
        if token.upper == "WINDOW":
            return not (after.kind in (Kind.WORD, Kind.QUOTED) and self.peek(2).upper == "AS")
        return CLAUSE_PAIRS.get(token.upper, "-") != after.upper

    def _is_table_clause(self) -> bool:
        """Return whether a clause that can follow a table starts here: sampling, pivoting, time travel."""
        if self.at_any(("TABLESAMPLE", "PIVOT", "UNPIVOT")) and self.at_op("(", ahead=1):
            return True
        return self._is_time_travel() or (
            self.at_word("UNPIVOT") and self.at_any(("INCLUDE", "EXCLUDE"), ahead=1)
        )

    def _is_time_travel(self) -> bool:
        """Return whether ``FOR VERSION AS`` or ``VERSION AS OF`` starts here."""
        if self.at_word("FOR"):
            return self.at_any(_VERSIONS, ahead=1) and self.peek(2).upper == "AS"
        return self.at_any(_VERSIONS) and self.peek().upper == "AS" and self.peek(2).upper == "OF"
