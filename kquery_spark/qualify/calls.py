"""Function calls in the strings of plan nodes: ``Project [upper(s#1) AS u#2]`` calls ``upper``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kquery_spark.qualify.fields import MalformedEvent

_ATTRIBUTE_END = re.compile(r"#\d+L?")
_PARENTHESIS = re.compile(r"[()]")
_PARENTHESIS_OR_SEPARATOR = re.compile(r"[(),\[\]]")
_BRACKET_OR_ALIAS = re.compile(r"[()\[\]]| AS ")
_NAME_CHARACTERS = re.compile(r"[\w$.]*")
_NAME_START = re.compile(r"[A-Za-z_$]")
# Each level of parentheses copies and scans its contents. A chain of 1,000 ORs with a call each scans 22 million.
_MAX_SCANNED_CHARACTERS = 25_000_000
# What Spark prints before the phases of an aggregate function.
_PHASES = ("partial_", "merge_", "finalmerge_")


def calls_in(text: str) -> Iterator[str]:
    """The functions that a text calls, in lower case, and for aggregates without the phase.

    Column names that look like calls (``sum(x)#12``, ``AS sum(x)#12``) do not count. MalformedEvent for a text that nests
    deeper than an expression of a query.
    """
    if _depth(text) * len(text) > _MAX_SCANNED_CHARACTERS:
        raise MalformedEvent("an expression nests too deeply")
    stack = [_calls_of_text(text)]  # a chain of many ORs nests too deeply for recursion
    while stack:
        call = next(stack[-1], None)
        if call is None:
            stack.pop()
            continue
        name, arguments = call
        if name:
            yield _function(name)
        stack.append(_calls_of_text(arguments))


def _depth(text: str) -> int:
    """How deeply the parentheses of a text nest."""
    depth = most = 0
    for match in _PARENTHESIS.finditer(text):
        depth += 1 if match[0] == "(" else -1
        most = max(most, depth)
    return most


def _calls_of_text(text: str) -> Iterator[tuple[str, str]]:
    """The outermost calls of a text: names, empty for plain parentheses, and the text of their arguments."""
    for item in _items(text):
        yield from _calls_of_item(item)


def _calls_of_item(item: str) -> Iterator[tuple[str, str]]:
    """The outermost calls of one expression."""
    item = item.strip()
    if (alias := _alias_at(item)) is not None:
        item = item[:alias]
    if _is_attribute(item):
        return
    at = 0
    while at < len(item):
        opening = item.find("(", at)
        if opening < 0:
            return
        closing = _closing(item, opening)
        name = _name_before(item, at, opening)
        if not name or not _ATTRIBUTE_END.match(item, closing + 1):
            yield name, item[opening + 1 : closing]
        at = closing + 1


def _function(name: str) -> str:
    """A name without the phase of an aggregate function."""
    lower = name.lower()
    phase = next((phase for phase in _PHASES if lower.startswith(phase)), "")
    return lower.removeprefix(phase)


def _name_before(item: str, start: int, opening: int) -> str:
    # from the end: a search from the start takes quadratic time
    match = _NAME_CHARACTERS.match(item[start:opening][::-1])
    word = "" if match is None else match[0][::-1]
    first = _NAME_START.search(word)
    return "" if first is None else word[first.start() :]


def _is_attribute(item: str) -> bool:
    """Whether the item is a column: it has one number, at its end."""
    if item.startswith(("(", "-", "NOT ", "cast(")):
        return False
    first = _ATTRIBUTE_END.search(item)
    return first is not None and first.end() == len(item)


def _alias_at(item: str) -> int | None:
    """The index of ``AS name``, which ends the item; None if the expression has no alias."""
    depth = 0
    for match in _BRACKET_OR_ALIAS.finditer(item):
        if match[0] in "([":
            depth += 1
        elif match[0] in ")]":
            depth -= 1
        elif depth == 0:
            return match.start()
    return None


def _closing(text: str, opening: int) -> int:
    """The index of the parenthesis that closes the one at ``opening``; the length of the text if none does."""
    depth = 0
    for match in _PARENTHESIS.finditer(text, opening):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.start()
    return len(text)


def _items(text: str) -> Iterator[str]:
    """The parts of a text between commas and brackets that are in no parentheses."""
    depth, begin = 0, 0
    for match in _PARENTHESIS_OR_SEPARATOR.finditer(text):
        if match[0] == "(":
            depth += 1
        elif match[0] == ")":
            depth -= 1
        elif depth <= 0:
            yield text[begin : match.start()]
            begin = match.end()
    yield text[begin:]
