"""Lookahead for tokens with two possible meanings: the start of a query or of a value, a keyword or a name."""

from __future__ import annotations

from kquery_spark.frontends.sql.keywords import SET_OPERATORS
from kquery_spark.frontends.sql.parser.token_stream import TokenStream
from kquery_spark.frontends.sql.parser.tokens import Kind

# Operators that cannot follow the first keyword of a syntax form: a keyword before one of them is a plain name.
_AFTER_A_NAME = frozenset(
    {")", "]", ",", ".", "=", "<>", "<", "<=", ">", ">=", "<=>", "|", "^", "&", "<<", ">>", ">>>"}
    | {"||", "/", "%", "::", "->", "=>", ";", "*/"}
)
_AFTER_QUERY = SET_OPERATORS | {"ORDER", "LIMIT", "OFFSET", "SORT", "CLUSTER", "DISTRIBUTE"}
_QUERY_STARTS = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})


def must_be_name(stream: TokenStream) -> bool:
    """True if the next word must be a plain name, because no syntax form that starts with it continues like this."""
    after = stream.peek()
    return after.kind is Kind.END or (after.kind is Kind.OP and after.value in _AFTER_A_NAME)


def at_query(stream: TokenStream, ahead: int, *, through_parentheses: bool = False) -> bool:
    """True if a query starts ``ahead`` tokens from here, directly after an opening parenthesis.

    With more parentheses, the token after the inner ones decides. ``((SELECT 1) UNION ...)`` is a query, but in
    ``((SELECT 1) + 2)`` the inner parentheses are a scalar subquery, and so in ``((SELECT 1))``.
    through_parentheses: only a query is possible here, so inner parentheses make no difference.
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
    """True if SELECT, VALUES, or another such word at this index starts a query and is not a column name."""
    word, after = stream.tokens[at].upper, stream.tokens[min(at + 1, len(stream.tokens) - 1)]
    if after.kind is Kind.END:
        return False
    if after.kind is Kind.OP:
        return word in ("SELECT", "VALUES") and after.value in ("(", "*", "-", "+", "~", "!", "/*+")
    return word == "SELECT" or after.upper not in ("IS", "IN", "NOT", "AND", "OR", "BETWEEN", "LIKE")


def _closing_index(stream: TokenStream, opening: int) -> int:
    """Return the index of the parenthesis that closes the one at ``opening``, or of the END token."""
    depth = 0
    for index in range(opening, len(stream.tokens)):
        token = stream.tokens[index]
        if token.kind is Kind.OP and token.value in "()":
            depth += 1 if token.value == "(" else -1
            if depth == 0:
                return index
    return len(stream.tokens) - 1


def words_in_parentheses(stream: TokenStream) -> tuple[set[str], int]:
    """Return the words and the number of commas directly inside the parentheses after the next word, not in nested ones.

    For example, ``TRIM(BOTH 'x' FROM f(a, b))`` returns BOTH, FROM and F, and no comma.
    """
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
