"""Parses a JSON line like Jackson does for Spark: single quotes and ``NaN`` are allowed, the rest of the line is ignored.

It parses only odd lines, which Arrow cannot parse or might parse differently. Each node has its source string, which Spark
returns if a column of strings has a value of another type.

For a malformed line, the question is whether Spark still returns some of its values. Jackson continues after the error, and
may see the end of a nested value there. ``MalformedJson.certain`` is True if it certainly cannot; then the row is all NULL.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from kquery_spark.errors import SourceError
from kquery_spark.kernels.json_text import (
    BadCharacter,
    MalformedJson,
    pair_surrogates,
    read_string,
    skip_blanks,
)

_PLAIN = {'"': re.compile(r'[^"\\\x00-\x1f]*'), "'": re.compile(r"[^'\\\x00-\x1f]*")}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_WORD = re.compile(r"(?:true|false|null|NaN|Infinity|[+-](?:INF|Infinity))(?![A-Za-z0-9_$])")
_WORDS = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_DEPTH = 400


class Node(NamedTuple):
    """A JSON value. kind: string, integer, float, word (NaN etc.), boolean, null, object or array.

    value: a str, a bool, a list of (name, node) pairs for an object, a list of nodes for an array; otherwise the same as
    ``raw``. raw: the source string.
    """

    kind: str
    value: Any
    raw: str


def scan(text: str) -> Node | None:
    """Parse the first value of a line; None for a blank line. Raises MalformedJson."""
    if "\0" in text[:4]:
        raise SourceError("a line begins with a zero byte, which is not supported")
    text = text.removeprefix("\ufeff")
    start = skip_blanks(text, 0)
    return _value(text, start, 0)[0] if start < len(text) else None


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if at >= len(text):
        raise MalformedJson(True)
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
        raise MalformedJson(depth < 2)
    if word[0] not in _WORDS:
        return Node("word", word[0], word[0]), word.end()
    kind = "null" if word[0] == "null" else "boolean"
    return Node(kind, _WORDS[word[0]], word[0]), word.end()


def _object(text: str, start: int, depth: int) -> tuple[Node, int]:
    _check_depth(depth)
    pairs: list[tuple[str, Node]] = []
    at = skip_blanks(text, start + 1)
    if text[at : at + 1] == "}":
        return Node("object", pairs, text[start : at + 1]), at + 1
    while True:
        if text[at : at + 1] not in ('"', "'"):
            raise MalformedJson(depth < 2 or at >= len(text))
        name, at = _string(text, at, depth, is_name=True)
        at = skip_blanks(text, at)
        if text[at : at + 1] != ":":
            raise MalformedJson(depth < 2 or at >= len(text))
        node, at = _value(text, skip_blanks(text, at + 1), depth)
        pairs.append((name, node))
        at = skip_blanks(text, at)
        mark = text[at : at + 1]
        if mark == "}":
            return Node("object", pairs, text[start : at + 1]), at + 1
        if mark != ",":
            raise MalformedJson(depth < 2 or not mark)
        at = skip_blanks(text, at + 1)


def _array(text: str, start: int, depth: int) -> tuple[Node, int]:
    _check_depth(depth)
    items: list[Node] = []
    at = skip_blanks(text, start + 1)
    if text[at : at + 1] == "]":
        return Node("array", items, text[start : at + 1]), at + 1
    while True:
        node, at = _value(text, at, depth)
        items.append(node)
        at = skip_blanks(text, at)
        mark = text[at : at + 1]
        if mark == "]":
            return Node("array", items, text[start : at + 1]), at + 1
        if mark != ",":
            raise MalformedJson(depth < 2 or not mark)
        at = skip_blanks(text, at + 1)


def _string(text: str, start: int, depth: int, is_name: bool = False) -> tuple[str, int]:
    """Read a string; return it, with ``?`` for surrogates without a pair, and the position after it."""
    try:
        value, end = read_string(text, start, _PLAIN)
    except BadCharacter as error:
        raise _broken(text, error.following, depth, is_name) from None
    has_escapes = len(value) < end - start - 2
    if not has_escapes or _SURROGATE.search(value) is None:
        return value, end
    return _SURROGATE.sub("?", pair_surrogates(value)), end


def _broken(text: str, following: int, depth: int, is_name: bool) -> MalformedJson:
    """The error for a bad character in a string. Jackson continues after it, at position ``following``."""
    rest = text[skip_blanks(text, following) :]
    return MalformedJson(not rest or (depth < 2 and (is_name or rest[0] not in ",}")))


def _check_depth(depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise SourceError(f"values nested deeper than {_MAX_DEPTH} levels are not supported")
