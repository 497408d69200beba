"""Aliases with and without AS: decides whether a word is a name or starts the next clause."""

from __future__ import annotations

from kquery_spark.frontends.sql.ast.relations import TableAlias
from kquery_spark.frontends.sql.keywords import CLAUSE_PAIRS, CLAUSE_WORDS, NOT_A_TABLE_ALIAS, OPERATOR_WORDS
from kquery_spark.frontends.sql.parser.token_stream import TokenStream
from kquery_spark.frontends.sql.parser.tokens import Kind

_VERSIONS = frozenset({"VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"})


def parse_column_alias(stream: TokenStream) -> str | None:
    """Read ``AS name``, ``name``, or nothing."""
    if stream.take_word("AS"):
        return stream.name("a name after AS")
    if stream.token.kind is Kind.QUOTED or at_free_word(stream):
        return stream.advance().value
    return None


def parse_table_alias(stream: TokenStream) -> TableAlias | None:
    """Read ``[AS] name [(columns)]`` or nothing."""
    pos = stream.token.pos
    if stream.take_word("AS"):
        if stream.at_any(NOT_A_TABLE_ALIAS):
            stream.fail(f"{stream.token.upper} cannot be a table's alias without backticks")
    elif stream.token.kind is not Kind.QUOTED and (
        not at_free_word(stream) or stream.at_any(NOT_A_TABLE_ALIAS) or at_table_clause(stream)
    ):
        return None
    name = stream.name("an alias after AS")
    columns = stream.names_in_parentheses("a column's name") if stream.at_op("(") else ()
    return TableAlias(name, columns, pos=pos)


def at_free_word(stream: TokenStream) -> bool:
    """True if the next word can be an alias without AS, because it cannot continue the query."""
    token, after = stream.token, stream.peek()
    if token.kind is not Kind.WORD or token.upper in OPERATOR_WORDS:
        return False
    if token.upper in CLAUSE_WORDS:
        # In SELECT a limit, b the comma shows that the word is an alias.
        return after.kind is Kind.OP and after.value == ","
    if token.upper == "WINDOW":
        return not (after.kind in (Kind.WORD, Kind.QUOTED) and stream.peek(2).upper == "AS")
    return CLAUSE_PAIRS.get(token.upper, "-") != after.upper


def at_table_clause(stream: TokenStream) -> bool:
    """True if a clause that can follow a table starts here: TABLESAMPLE, PIVOT, UNPIVOT, or time travel."""
    if stream.at_any(("TABLESAMPLE", "PIVOT", "UNPIVOT")) and stream.at_op("(", ahead=1):
        return True
    return _at_time_travel(stream) or (
        stream.at_word("UNPIVOT") and stream.at_any(("INCLUDE", "EXCLUDE"), ahead=1)
    )


def _at_time_travel(stream: TokenStream) -> bool:
    """True if ``FOR VERSION AS`` or ``VERSION AS OF`` starts here."""
    if stream.at_word("FOR"):
        return stream.at_any(_VERSIONS, ahead=1) and stream.peek(2).upper == "AS"
    return stream.at_any(_VERSIONS) and stream.peek().upper == "AS" and stream.peek(2).upper == "OF"
