"""Parses a JSON document as Jackson does for Spark's JSON functions, and writes values as Jackson writes them.

Single quotes and control characters in strings are allowed, and everything after the first value is ignored. The compiled
loops of ``json_loops`` handle most strings. This module handles the others, and all strings until the loops are compiled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.json_text import MalformedJson, pair_surrogates, read_string, skip_blanks

_PLAIN = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_NUMBER = re.compile(r"-?(?:0(?![0-9])|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![.eE])")
_WORD = re.compile(r"true|false|null")
_WRITTEN = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_SPECIAL = re.compile('[\x00-\x1f"\\\\\ud800-\udfff\U00010000-\U0010ffff]')
_SPECIAL_CHARACTERS = re.compile(r'[\x00-\x1f"\\]')
_MAX_DEPTH = 300
_MAX_NUMBER_CHARACTERS = 1000  # Jackson's limit
_MAX_NAME_CHARACTERS = 50_000


class Document(NamedTuple):
    """A JSON value. ``kind`` is string, integer, float, word (true, false or null), object or array.

    value: the string, or the characters of a number or word. items: the elements of an array, or the values of an object.
    names: the names of an object, one for each item.
    """

    kind: str
    value: str
    items: Sequence[Document] = ()
    names: Sequence[str] = ()


def parse(text: str) -> Document | None:
    """Parse the first value of a string; None if the string is blank or malformed."""
    if text.startswith("\ufeff"):
        raise Unsupported("JSON strings that begin with a byte order mark are not supported")
    try:
        return _root(text)
    except MalformedJson:
        return None


def _root(text: str) -> Document | None:
    at = skip_blanks(text, 0)
    if at == len(text):
        return None
    document, end = _value(text, at, 0)
    following = text[end : end + 1]
    if not following or document.kind in ("string", "object", "array"):
        return document
    if document.kind != "word":
        return document if following in " \t\r\n" else None
    if following < "0" or following in "]}":
        return document
    if following >= "\x7f":
        raise Unsupported("JSON words that are followed by a non-ASCII character are not supported")
    return None if following.isalnum() or following == "_" else document


def _value(text: str, at: int, depth: int) -> tuple[Document, int]:
    first = text[at : at + 1]
    if first in ('"', "'"):
        value, end = _string(text, at)
        return Document("string", value), end
    if first in ("{", "["):
        if depth == _MAX_DEPTH:
            raise Unsupported(f"JSON values nested deeper than {_MAX_DEPTH} levels are not supported")
        return (_object if first == "{" else _array)(text, at, depth + 1)
    number = _NUMBER.match(text, at)
    if number is not None:
        if len(number[0]) > _MAX_NUMBER_CHARACTERS:
            raise Unsupported(f"JSON numbers of more than {_MAX_NUMBER_CHARACTERS} digits are not supported")
        return Document("float" if number[1] or number[2] else "integer", number[0]), number.end()
    word = _WORD.match(text, at)
    if word is None:
        raise MalformedJson
    return Document("word", word[0]), word.end()


def _object(text: str, start: int, depth: int) -> tuple[Document, int]:
    names: list[str] = []
    items: list[Document] = []
    at = skip_blanks(text, start + 1)
    if text[at : at + 1] == "}":
        return Document("object", "", items, names), at + 1
    while True:
        if text[at : at + 1] not in ('"', "'"):
            raise MalformedJson
        name, at = _string(text, at)
        if len(name) > _MAX_NAME_CHARACTERS:
            raise Unsupported(f"JSON names of more than {_MAX_NAME_CHARACTERS} characters are not supported")
        at = skip_blanks(text, at)
        if text[at : at + 1] != ":":
            raise MalformedJson
        item, at = _value(text, skip_blanks(text, at + 1), depth)
        names.append(name)
        items.append(item)
        at = skip_blanks(text, at)
        mark = text[at : at + 1]
        if mark == "}":
            return Document("object", "", items, names), at + 1
        if mark != ",":
            raise MalformedJson
        at = skip_blanks(text, at + 1)


def _array(text: str, start: int, depth: int) -> tuple[Document, int]:
    items: list[Document] = []
    at = skip_blanks(text, start + 1)
    if text[at : at + 1] == "]":
        return Document("array", "", items), at + 1
    while True:
        item, at = _value(text, at, depth)
        items.append(item)
        at = skip_blanks(text, at)
        mark = text[at : at + 1]
        if mark == "]":
            return Document("array", "", items), at + 1
        if mark != ",":
            raise MalformedJson
        at = skip_blanks(text, at + 1)


def _string(text: str, start: int) -> tuple[str, int]:
    """Read a string; return it, with surrogate pairs combined, and the position after it."""
    value, end = read_string(text, start, _PLAIN)
    return pair_surrogates(value), end


# --- writing values as Jackson does ---------------------------------------------------------------

PrintDouble = Callable[[float], str]


def to_json(document: Document, print_double: PrintDouble, escapes_wide: bool = True) -> str:
    """Write a value as Jackson copies it: without blanks, and with numbers as Java prints them.

    escapes_wide: escape characters above U+FFFF, as Jackson does when it writes bytes but not when it writes characters.
    """
    return "".join(_pieces(document, print_double, quote_bytes if escapes_wide else _quote_characters))


def _pieces(document: Document, print_double: PrintDouble, quote: Callable[[str], str]) -> Iterator[str]:
    match document.kind:
        case "string":
            yield quote(document.value)
        case "integer":
            yield "0" if document.value == "-0" else document.value
        case "float":
            value = float(document.value)
            yield f'"{print_double(value)}"' if math.isinf(value) else print_double(value)
        case "word":
            yield document.value
        case "array":
            for i, item in enumerate(document.items):
                yield "," if i else "["
                yield from _pieces(item, print_double, quote)
            yield "]" if document.items else "[]"
        case _:
            for i, (name, item) in enumerate(zip(document.names, document.items, strict=True)):
                yield f"{',' if i else '{'}{quote(name)}:"
                yield from _pieces(item, print_double, quote)
            yield "}" if document.items else "{}"


def quote_bytes(text: str) -> str:
    """Quote a string and escape it as Jackson does when it writes UTF-8 bytes."""
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _quote_characters(text: str) -> str:
    """Quote a string and escape it as Jackson does when it writes characters."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise Unsupported("unpaired surrogates after a wildcard of a JSON path are not supported")
    return f'"{_SPECIAL_CHARACTERS.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    short = _WRITTEN.get(character)
    if short is not None:
        return short
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex().upper()}" for i in range(0, len(units), 2))


# --- evaluating paths -----------------------------------------------------------------------------


def value_at(document: Document, steps: Sequence[str | int]) -> Document | None:
    """Return the first value at a path of names and indexes; fields that are null are skipped."""
    if not steps:
        return document
    step, *others = steps
    if isinstance(step, int):
        if document.kind != "array" or step >= len(document.items):
            return None
        return value_at(document.items[step], others)
    if document.kind != "object":
        return None
    for name, item in zip(document.names, document.items, strict=True):
        if name == step and not is_null(item):
            match = value_at(item, others)
            if match is not None:
                return match
    return None


def is_null(document: Document) -> bool:
    """Return True if a value is null."""
    return document.kind == "word" and document.value == "null"
