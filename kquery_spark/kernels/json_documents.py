"""Writes JSON values as Jackson does for Spark's JSON functions, and finds the value at a path.

The compiled loops of ``json_loops`` do this for most strings. This module handles the others, and all strings until the
loops are compiled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from kquery_spark.errors import Unsupported
from kquery_spark.kernels.json_parser import Node

PrintDouble = Callable[[float], str]

SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
"""The characters that Jackson escapes with a backslash and one more character, and what it writes for them."""
_SPECIAL = re.compile('[\x00-\x1f"\\\\\ud800-\udfff\U00010000-\U0010ffff]')
_SPECIAL_CHARACTERS = re.compile(r'[\x00-\x1f"\\]')


def to_json(node: Node, print_double: PrintDouble, escapes_wide: bool = True) -> str:
    """Write a value as Jackson copies it: without blanks, and with numbers as Java prints them.

    node: a node that ``parse_string`` returned. escapes_wide: escape characters above U+FFFF, as Jackson does when it writes
    bytes but not when it writes characters.
    """
    return "".join(_pieces(node, print_double, _quote_bytes if escapes_wide else _quote_characters))


def _pieces(node: Node, print_double: PrintDouble, quote: Callable[[str], str]) -> Iterator[str]:
    match node.kind:
        case "string":
            yield quote(node.value)
        case "integer":
            yield "0" if node.value == "-0" else node.value
        case "float":
            value = float(node.value)
            yield f'"{print_double(value)}"' if math.isinf(value) else print_double(value)
        case "boolean" | "null":
            yield node.value
        case "array":
            for i, item in enumerate(node.items):
                yield "," if i else "["
                yield from _pieces(item, print_double, quote)
            yield "]" if node.items else "[]"
        case "object":
            for i, (name, item) in enumerate(node.fields()):
                yield f"{',' if i else '{'}{quote(name)}:"
                yield from _pieces(item, print_double, quote)
            yield "}" if node.items else "{}"


def _quote_bytes(text: str) -> str:
    """Quote a string and escape it as Jackson does when it writes UTF-8 bytes."""
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _quote_characters(text: str) -> str:
    """Quote a string and escape it as Jackson does when it writes characters."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise Unsupported("unpaired surrogates after a wildcard of a JSON path are not supported")
    return f'"{_SPECIAL_CHARACTERS.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    short = SHORT_ESCAPES.get(character)
    if short is not None:
        return short
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex().upper()}" for i in range(0, len(units), 2))


def value_at(node: Node, steps: Sequence[str | int]) -> Node | None:
    """Return the first value at a path of names and indexes; fields that are null are skipped."""
    return next(values_at(node, steps), None)


def values_at(node: Node, steps: Sequence[str | int]) -> Iterator[Node]:
    """Yield all values at a path of names and indexes; duplicate names may give several. Null fields are skipped."""
    if not steps:
        yield node
        return
    step, *others = steps
    if isinstance(step, int):
        if node.kind == "array" and step < len(node.items):
            yield from values_at(node.items[step], others)
    elif node.kind == "object":
        for name, item in node.fields():
            if name == step and item.kind != "null":
                yield from values_at(item, others)
