"""The tokenizer: converts a SQL string to tokens with their positions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from kquery_spark.errors import SqlError
from kquery_spark.frontends.sql.parser.literal_values import unescape
from kquery_spark.run_control import check_run


class Kind(Enum):
    """The kind of a token. Keywords are of the kind WORD, because Spark's SQL allows most of them as names."""

    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    OP = "operator"
    END = "end of text"


@dataclass(frozen=True, slots=True)
class Token:
    """One token. value: the operator, the unescaped string or name, or the number as written. pos: its offset in the SQL."""

    kind: Kind
    value: str
    pos: int
    upper: str = ""  # the word in upper case, empty for everything that cannot be a keyword

    def describe(self) -> str:
        """Return the token as error messages name it."""
        if self.kind is Kind.END:
            return "the end of the SQL"
        if self.kind is Kind.STRING:
            return "a string"
        return f"'{self.value}'"


# Spark's own list of white space.
_SPACE = re.compile("[ \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+")
# A backslash at the end of a line continues a line comment.
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_RAW_STRING = re.compile(r"[rR](?:'([^']*)'|\"([^\"]*)\")")
# A doubled quote inside a string means one quote, so the closing quote is one that is not followed by another. The lookahead
# prevents backtracking to a shorter match, so an unclosed string takes linear time.
_STRING = re.compile(
    r"'((?:[^'\\]|\\.|'')*)'(?!')|\"((?:[^\"\\]|\\.|\"\")*)\"(?!\")",  # Python 3.10 has no possessive repeats
    re.DOTALL,
)
_QUOTED_NAME = re.compile(r"`((?:[^`]|``)*)`(?!`)")
_NUMBER = re.compile(
    r"(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?(?:bd|d|f)?(?![a-z0-9_])"  # with a point: nothing name-like may follow
    r"|\d+e[+-]\d+(?:bd|d|f)?"
    r"|\d+(?:[lsy]|(?:e\d+)?(?:bd|d|f)?)(?!\w)",
    re.IGNORECASE | re.ASCII,
)
_WORD = re.compile(r"\w+")
_OPERATOR = re.compile(r"<=>|>>>|<<|>>|<>|!=|<=|>=|==|!>|!<|\|\||\|>|->|=>|::|[-+*/%=<>(),.\[\]!~&|^:?;{}]")
_SAME_OPERATOR = {"==": "=", "!=": "<>", "!>": "<=", "!<": ">="}


def tokenize(sql: str) -> list[Token]:
    """Return the tokens of ``sql`` without comments and white space; the last one is of the kind END.

    Raises SqlError for unclosed strings, names, and comments, and for characters that SQL does not use.
    """
    tokens: list[Token] = []
    pos, in_hint = 0, False
    while pos < len(sql):
        check_run()
        if match := _SPACE.match(sql, pos) or _LINE_COMMENT.match(sql, pos):
            pos = match.end()
        elif sql.startswith("/*+", pos):
            tokens.append(Token(Kind.OP, "/*+", pos))
            in_hint, pos = True, pos + 3
        elif sql.startswith("/*", pos):
            pos = _skip_comment(sql, pos)
        elif in_hint and sql.startswith("*/", pos):
            tokens.append(Token(Kind.OP, "*/", pos))
            in_hint, pos = False, pos + 2
        else:
            token, pos = _one_token(sql, pos)
            tokens.append(token)
    tokens.append(Token(Kind.END, "", len(sql)))
    return tokens


def _one_token(sql: str, pos: int) -> tuple[Token, int]:
    """Return the token that starts at ``pos``, and the offset after it."""
    if match := _RAW_STRING.match(sql, pos):
        return Token(Kind.STRING, match[1] if match[1] is not None else match[2], pos), match.end()
    if sql[pos] in "'\"`":
        return _quoted_token(sql, pos)
    if match := _NUMBER.match(sql, pos):
        return Token(Kind.NUMBER, match[0], pos), match.end()
    if match := _WORD.match(sql, pos):
        if not match[0].isascii():
            raise SqlError(f"the name {match[0]} needs backticks: `{match[0]}`", sql, pos)
        return Token(Kind.WORD, match[0], pos, match[0].upper()), match.end()
    if match := _OPERATOR.match(sql, pos):
        return Token(Kind.OP, _SAME_OPERATOR.get(match[0], match[0]), pos), match.end()
    raise SqlError(f"unexpected character {sql[pos]!r}", sql, pos)


def _quoted_token(sql: str, pos: int) -> tuple[Token, int]:
    """Return the string or the name in backticks that starts at ``pos``, and the offset after it."""
    quote = sql[pos]
    if quote == "`":
        if not (match := _QUOTED_NAME.match(sql, pos)):
            raise SqlError("this quoted name is not closed", sql, pos)
        return Token(Kind.QUOTED, match[1].replace("``", "`"), pos), match.end()
    if not (match := _STRING.match(sql, pos)):
        raise SqlError("this string is not closed", sql, pos)
    body = match[1] if match[1] is not None else match[2]
    return Token(Kind.STRING, unescape(body.replace(quote * 2, quote)), pos), match.end()


def _skip_comment(sql: str, start: int) -> int:
    """Return the offset after the bracketed comment at ``start``; bracketed comments nest."""
    depth, pos = 1, start + 2
    while depth:
        edge = _COMMENT_EDGE.search(sql, pos)
        if edge is None:
            raise SqlError("this comment is not closed", sql, start)
        depth += 1 if edge[0] == "/*" else -1
        pos = edge.end()
    return pos
