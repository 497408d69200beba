"""Parses a JSON line like Jackson does for Spark: single quotes and ``NaN`` are allowed, the rest of the line is ignored.

It parses only odd lines, which Arrow cannot parse or might parse differently. Each node has its source string, which Spark
returns if a column of strings has a value of another type.

For a malformed line, the question is whether Spark still returns some of its values. Jackson continues after the error, and
may see the end of a nested value there. ``Malformed.certain`` is True if it certainly cannot, so that the row is all NULL.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from kquery_spark.errors import SourceError

_BLANK = re.compile(r"[ \t\r\n]*")
_PLAIN = {'"': re.compile(r'[^"\\\x00-\x1f]*'), "'": re.compile(r"[^'\\\x00-\x1f]*")}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_WORD = re.compile(r"(?:true|false|null|NaN|Infinity|[+-](?:INF|Infinity))(?![A-Za-z0-9_$])")
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "/": "/", "\\": "\\", "'": "'"}
_LONE = re.compile("[\ud800-\udfff]")
_MAX_DEPTH = 400


class Node(NamedTuple):
    """A JSON value. kind: string, integer, float, word (NaN etc.), boolean, null, object or array.

    value: a str, a bool, a list of (name, node) pairs for an object, a list of nodes for an array; otherwise the same as
    ``raw``. raw: the source string.
    """

    kind: str
    value: Any
    raw: str


class Malformed(Exception):
    """A string is not valid JSON. certain: whether Jackson cannot continue with the line after the error."""

    def __init__(self, certain: bool) -> None:
        super().__init__("malformed JSON")
        self.certain = certain


def scan(text: str) -> Node | None:
    """Parse the first value of a line; None for a blank line. Raises Malformed."""
    if "\0" in text[:4]:
        raise SourceError("a line begins with a zero byte, which is not supported")
    text = text.removeprefix("\ufeff")
    start = _skip(text, 0)
    return _value(text, start, 0)[0] if start < len(text) else None


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if at >= len(text):
        raise Malformed(True)
    first = text[at]
    if first in _PLAIN:
        value, end = _string(text, at, depth)
        return Node("string", value, text[at:end]), end
    if first == "{":
        return _object(text, at, depth + 1)
    if first == "[":
        return _array(text, at, depth + 1)
    number = _NUMBER.match(text, at)
    if number is not None:
        return Node("float" if number[1] else "integer", number[0], number[0]), number.end()
    word = _WORD.match(text, at)
    if word is None:
        raise Malformed(depth < 2)
    if word[0] not in _WORDS:
        return Node("word", word[0], word[0]), word.end()
    kind = "null" if word[0] == "null" else "boolean"
    return Node(kind, _WORDS[word[0]], word[0]), word.end()


def _object(text: str, start: int, depth: int) -> tuple[Node, int]:
    _check_depth(depth)
    pairs: list[tuple[str, Node]] = []
    at = _skip(text, start + 1)
    if text[at : at + 1] == "}":
        return Node("object", pairs, text[start : at + 1]), at + 1
    while True:
        if text[at : at + 1] not in ('"', "'"):
            raise Malformed(depth < 2 or at >= len(text))
        name, at = _string(text, at, depth, is_name=True)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise Malformed(depth < 2 or at >= len(text))
        node, at = _value(text, _skip(text, at + 1), depth)
        pairs.append((name, node))
        at = _skip(text, at)
        mark = text[at : at + 1]
        if mark == "}":
            return Node("object", pairs, text[start : at + 1]), at + 1
        if mark != ",":
            raise Malformed(depth < 2 or not mark)
        at = _skip(text, at + 1)


def _array(text: str, start: int, depth: int) -> tuple[Node, int]:
    _check_depth(depth)
    items: list[Node] = []
    at = _skip(text, start + 1)
    if text[at : at + 1] == "]":
        return Node("array", items, text[start : at + 1]), at + 1
    while True:
        node, at = _value(text, at, depth)
        items.append(node)
        at = _skip(text, at)
        mark = text[at : at + 1]
        if mark == "]":
            return Node("array", items, text[start : at + 1]), at + 1
        if mark != ",":
            raise Malformed(depth < 2 or not mark)
        at = _skip(text, at + 1)


def _string(text: str, start: int, depth: int, is_name: bool = False) -> tuple[str, int]:
    quote = text[start]
    plain = _PLAIN[quote]
    parts: list[str] = []
    at = start + 1
    while True:
        match = plain.match(text, at)
        assert match is not None
        parts.append(match[0])
        at = match.end()
        mark = text[at : at + 1]
        if mark == quote:
            return _joined(parts), at + 1
        if mark != "\\":
            raise _broken(text, at + 1, depth, is_name)
        code = text[at + 1 : at + 2]
        if code == "u":
            digits = text[at + 2 : at + 6]
            for offset in range(4):
                if digits[offset : offset + 1] not in _HEX:
                    raise _broken(text, at + 3 + offset, depth, is_name)
            parts.append(chr(int(digits, 16)))
            at += 6
        elif code in _ESCAPES:
            parts.append(_ESCAPES[code])
            at += 2
        else:
            raise _broken(text, at + 2, depth, is_name)


_HEX = frozenset("0123456789abcdefABCDEF")


def _broken(text: str, behind: int, depth: int, is_name: bool) -> Malformed:
    """The error for a bad character in a string. Jackson continues after it, at position ``behind``."""
    rest = text[_skip(text, behind) :]
    return Malformed(not rest or (depth < 2 and (is_name or rest[0] not in ",}")))


def _joined(parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    whole = "".join(parts)
    if _LONE.search(whole) is None:
        return whole
    paired = whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _LONE.sub("?", paired)


def _check_depth(depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise SourceError(f"values nested deeper than {_MAX_DEPTH} levels are not supported")
