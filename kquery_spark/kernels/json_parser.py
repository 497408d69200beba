"""Parses one JSON value as Jackson does for Spark: single quotes are allowed, and what follows the value is ignored.

JSON functions and JSON files use the same grammar, with the few differences that ``_Dialect`` lists. Faster code handles
most strings and lines: the compiled loops of ``json_loops`` for functions, and Arrow's parser for files. This parser handles
the others. ``json_loops/tokens.py`` has the same tokens for bytes, but shares no code with this parser: the loops work on
positions and build no tree. Without numba, they take four times as long as this parser with its regular expressions.

Spark may still return some values of a malformed line of a file: Jackson continues after the error, and may find the end of
a nested value there. ``MalformedJson.certain`` is True if that is impossible, so that all values of the row are NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kquery_spark.errors import Unsupported

_BLANKS = re.compile(r"[ \t\r\n]*")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "/": "/", "\\": "\\", "'": "'"}
_HEX = re.compile(r"[0-9a-fA-F]{0,4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"-?(?:0(?![0-9])|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![.eE])")
_WORD_KINDS = {"true": "boolean", "false": "boolean", "null": "null"}
_MAX_DEPTH = 300
_MAX_NUMBER_CHARACTERS = 1000  # Jackson's limit
_MAX_NAME_CHARACTERS = 50_000


UNCERTAIN_REASON = "malformed in a way in which Spark may read a part of it"
"""The reason to decline a string whose error is not ``certain``."""


class MalformedJson(Exception):
    """A string is not valid JSON. certain: True if Jackson certainly cannot continue with the string after the error."""

    def __init__(self, certain: bool = True) -> None:
        super().__init__("malformed JSON")
        self.certain = certain


@dataclass(frozen=True)
class _Dialect:
    """What differs between strings of functions and lines of files.

    plain: for each quote, the characters before the next quote, backslash, or character that is not allowed. words: the
    values that are words. surrogate: replaces each escaped surrogate without a pair; None keeps it. keeps_source: whether
    ``Node.raw`` has the source of strings, objects, and arrays.
    """

    plain: dict[str, re.Pattern[str]]
    words: re.Pattern[str]
    surrogate: str | None
    keeps_source: bool


_FUNCTIONS = _Dialect(
    plain={'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")},
    words=re.compile(r"true|false|null"),
    surrogate=None,
    keeps_source=False,
)
_FILES = _Dialect(
    plain={'"': re.compile(r'[^"\\\x00-\x1f]*'), "'": re.compile(r"[^'\\\x00-\x1f]*")},
    words=re.compile(r"true|false|null|NaN|Infinity|[+-](?:INF|Infinity)"),
    surrogate="?",
    keeps_source=True,
)


class Node(NamedTuple):
    """A JSON value. kind: string, integer, float, nonfinite number (such as NaN), boolean, null, object, or array.

    raw: the source string, but for JSON functions it is empty if the value is a string, an object, or an array. value: a
    string without its quotes and escapes, empty for an object or array, and the same as ``raw`` for other kinds. items: the
    elements of an array, or the values of an object. names: the names of an object, one for each item.
    """

    kind: str
    raw: str
    value: str
    items: Sequence[Node] = ()
    names: Sequence[str] = ()

    def fields(self) -> Iterator[tuple[str, Node]]:
        """The names and values of an object."""
        return zip(self.names, self.items, strict=True)


def parse_string(text: str) -> Node | None:
    """Parse the first value of an argument of a JSON function; None if the string is blank or malformed."""
    if text.startswith("\ufeff"):
        raise Unsupported("JSON strings that begin with a byte order mark are not supported")
    try:
        return _parse(text, _FUNCTIONS)
    except MalformedJson:
        return None


def parse_line(text: str) -> Node | None:
    """Parse the first value of a line of a file; None for a blank line. Raises MalformedJson."""
    if "\0" in text[:4]:
        raise Unsupported("JSON lines that begin with a zero byte are not supported")
    return _parse(text.removeprefix("\ufeff"), _FILES)


def _parse(text: str, dialect: _Dialect) -> Node | None:
    start = _skip_blanks(text, 0)
    if start == len(text):
        return None
    node, end = _Parser(text, dialect).value(start, 0)
    if node.kind not in ("object", "array", "string"):
        _check_root_end(node, text[end : end + 1])
    return node


def _check_root_end(node: Node, following: str) -> None:
    """Check the character after a number or word that is the whole document."""
    if node.kind in ("integer", "float"):
        if following not in " \t\r\n":
            raise MalformedJson
    elif following >= "0" and following not in "]}":
        # After a word, Jackson accepts characters below "0" and closing brackets, but no letters, digits and underscores.
        if following >= "\x7f":
            raise Unsupported("JSON words that are followed by a non-ASCII character are not supported")
        if following.isalnum() or following == "_":
            raise MalformedJson


def _skip_blanks(text: str, at: int) -> int:
    """Return the position of the first character from ``at`` on that is not a blank."""
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


class _Parser:
    """Parses the parts of a document. Each method takes a position, and returns a part and the position after it.

    depth: the number of containers around the part.
    """

    def __init__(self, text: str, dialect: _Dialect) -> None:
        self._text = text
        self._dialect = dialect

    def value(self, at: int, depth: int) -> tuple[Node, int]:
        """Parse the value that begins at ``at``."""
        text = self._text
        first = text[at : at + 1]
        if first and first in "\"'":
            value, end = self._string(at, depth)
            return Node("string", self._source(at, end), value), end
        if first and first in "{[":
            if depth == _MAX_DEPTH:
                raise Unsupported(f"JSON values nested deeper than {_MAX_DEPTH} levels are not supported")
            return self._object(at, depth + 1) if first == "{" else self._array(at, depth + 1)
        number = _NUMBER.match(text, at)
        if number is not None:
            if len(number[0]) > _MAX_NUMBER_CHARACTERS:
                raise Unsupported(
                    f"JSON numbers of more than {_MAX_NUMBER_CHARACTERS} digits are not supported"
                )
            kind = "float" if number[1] or number[2] else "integer"
            return Node(kind, number[0], number[0]), number.end()
        word = self._dialect.words.match(text, at)
        if word is None:
            raise self._error(at, depth)
        return Node(_WORD_KINDS.get(word[0], "nonfinite number"), word[0], word[0]), word.end()

    def _object(self, start: int, depth: int) -> tuple[Node, int]:
        text = self._text
        names: list[str] = []
        items: list[Node] = []
        at = _skip_blanks(text, start + 1)
        mark = text[at : at + 1]
        while mark != "}":
            if text[at : at + 1] not in ('"', "'"):
                raise self._error(at, depth)
            name, at = self._string(at, depth, is_name=True)
            if len(name) > _MAX_NAME_CHARACTERS:
                raise Unsupported(
                    f"JSON names of more than {_MAX_NAME_CHARACTERS} characters are not supported"
                )
            at = _skip_blanks(text, at)
            if text[at : at + 1] != ":":
                raise self._error(at, depth)
            item, at = self.value(_skip_blanks(text, at + 1), depth)
            names.append(name)
            items.append(item)
            mark, at = self._mark(at, "}", depth)
        return Node("object", self._source(start, at + 1), "", items, names), at + 1

    def _array(self, start: int, depth: int) -> tuple[Node, int]:
        text = self._text
        items: list[Node] = []
        at = _skip_blanks(text, start + 1)
        mark = text[at : at + 1]
        while mark != "]":
            item, at = self.value(at, depth)
            items.append(item)
            mark, at = self._mark(at, "]", depth)
        return Node("array", self._source(start, at + 1), "", items), at + 1

    def _source(self, start: int, end: int) -> str:
        return self._text[start:end] if self._dialect.keeps_source else ""

    def _mark(self, at: int, closing: str, depth: int) -> tuple[str, int]:
        """Return the comma or closing bracket after a value, and the start of the next value or of the bracket."""
        at = _skip_blanks(self._text, at)
        mark = self._text[at : at + 1]
        if mark == ",":
            return mark, _skip_blanks(self._text, at + 1)
        if mark != closing:
            raise self._error(at, depth)
        return mark, at

    def _error(self, at: int, depth: int) -> MalformedJson:
        """Return the error for a character that is not allowed at ``at``.

        It is certain if no nested value is open, whose end Jackson might find later, or if the string ends.
        """
        return MalformedJson(depth < 2 or at >= len(self._text))

    def _string(self, start: int, depth: int, is_name: bool = False) -> tuple[str, int]:
        text = self._text
        quote = text[start]
        plain = self._dialect.plain[quote]
        parts: list[str] = []
        at = start + 1
        while True:
            match = plain.match(text, at)
            assert match is not None
            parts.append(match[0])
            at = match.end()
            mark = text[at : at + 1]
            if mark == quote:
                break
            if mark != "\\":
                raise self._bad_character(at + 1, depth, is_name)
            letter = text[at + 1 : at + 2]
            if letter == "u":
                digits = _HEX.match(text, at + 2)
                assert digits is not None
                if len(digits[0]) < 4:
                    raise self._bad_character(digits.end() + 1, depth, is_name)
                parts.append(chr(int(digits[0], 16)))
                at += 6
            elif letter in _ESCAPES:
                parts.append(_ESCAPES[letter])
                at += 2
            else:
                raise self._bad_character(at + 2, depth, is_name)
        value = "".join(parts)
        return (value if len(parts) == 1 else self._pair_surrogates(value)), at + 1

    def _pair_surrogates(self, value: str) -> str:
        """Combine each high surrogate and the low surrogate after it to one character."""
        if _SURROGATE.search(value) is None:
            return value
        paired = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        replacement = self._dialect.surrogate
        return paired if replacement is None else _SURROGATE.sub(replacement, paired)

    def _bad_character(self, following: int, depth: int, is_name: bool) -> MalformedJson:
        """Return the error for a bad character in a string. Jackson continues after it, at position ``following``.

        It is certain if nothing follows, or if no nested value is open and Jackson does not find the end of a field there: a
        comma or a closing brace after a value (but not after a name).
        """
        following_text = self._text[_skip_blanks(self._text, following) :]
        return MalformedJson(not following_text or (depth < 2 and (is_name or following_text[0] not in ",}")))
