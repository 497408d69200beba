"""Decisions between two readings of the next tokens: a query or a value, a keyword or a name."""

from __future__ import annotations

from kquery_spark.frontends.sql.keywords import SET_OPERATORS
from kquery_spark.frontends.sql.parser.token_stream import TokenStream
from kquery_spark.frontends.sql.parser.tokens import Kind

# Operators no keyword form can go on with: a keyword before one of them is a plain name.
_AFTER_A_NAME = frozenset(
    {")", "]", ",", ".", "=", "<>", "<", "<=", ">", ">=", "<=>", "|", "^", "&", "<<", ">>", ">>>"}
    | {"||", "/", "%", "::", "->", "=>", ";", "*/"}
)
_AFTER_QUERY = SET_OPERATORS | {"ORDER", "LIMIT", "OFFSET", "SORT", "CLUSTER", "DISTRIBUTE"}
_QUERY_STARTS = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})


def must_be_name(stream: TokenStream) -> bool:
    """Whether the next word must be a plain name because nothing it could introduce follows."""
    after = stream.peek()
    return after.kind is Kind.END or (after.kind is Kind.OP and after.value in _AFTER_A_NAME)


def at_query(stream: TokenStream, ahead: int, *, through_parentheses: bool = False) -> bool:
    """Whether a query starts ``ahead`` tokens from here, which is just inside an open parenthesis.

    ``((SELECT 1))`` starts with a subquery as a value, ``((SELECT 1) UNION ...)`` with a query: the token after the inner
    parenthesis decides, unless ``through_parentheses`` says that only a query is possible here.
    """
    first = inner = min(stream.index + ahead, len(stream.tokens) - 1)
    while stream.tokens[inner].kind is Kind.OP and stream.tokens[inner].value == "(":
        inner += 1
    if stream.tokens[inner].upper not in _QUERY_STARTS or not introduces_query(stream, inner):
        return False
    if inner == first or through_parentheses:
        return True
    closing = _closing_index(stream, first)
    return closing + 1 < len(stream.tokens) and stream.tokens[closing + 1].upper in _AFTER_QUERY


def introduces_query(stream: TokenStream, at: int) -> bool:
    """Whether SELECT, VALUES ... at this index starts a query and is not a column of that name."""
    word, after = stream.tokens[at].upper, stream.tokens[min(at + 1, len(stream.tokens) - 1)]
    if after.kind is Kind.END:
        return False
    if after.kind is Kind.OP:
        return word in ("SELECT", "VALUES") and after.value in ("(", "*", "-", "+", "~", "!", "/*+")
    return word == "SELECT" or after.upper not in ("IS", "IN", "NOT", "AND", "OR", "BETWEEN", "LIKE")


def _closing_index(stream: TokenStream, opening: int) -> int:
    """Index of the parenthesis that closes the one at ``opening``, or of the end."""
    depth = 0
    for index in range(opening, len(stream.tokens)):
        token = stream.tokens[index]
        if token.kind is Kind.OP and token.value in "()":
            depth += 1 if token.value == "(" else -1
            if depth == 0:
                return index
    return len(stream.tokens) - 1


def words_in_parentheses(stream: TokenStream) -> tuple[set[str], int]:
    """The words and the number of commas directly inside the parentheses after the next word."""
    words: set[str] = set()
    commas = depth = 0
    for token in stream.tokens[stream.index + 1 :]:
        if token.kind is Kind.OP and token.value in "()[]":
            depth += 1 if token.value in "([" else -1
            if depth == 0:
                break
        elif depth == 1:
            words.add(token.upper)
            commas += token.kind is Kind.OP and token.value == ","
    return words, commas
