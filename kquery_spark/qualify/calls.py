"""Finds function calls in the strings of plan nodes: ``Project [upper(s#1) AS u#2]`` calls ``upper``.

These strings have no grammar. The search works from the outside in: split a string at the commas and brackets outside of
parentheses, drop aliases and plain columns, take the word before each opening parenthesis as a function's name, and continue
with the string between the parentheses.
"""

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


def calls_in(expressions: str) -> Iterator[str]:
    """Yield the names of the called functions in lower case; aggregate functions without the phase.

    Column names that look like calls (``sum(x)#12``, ``AS sum(x)#12``) are ignored. Raises MalformedEvent for a string that
    nests deeper than the expressions of real queries.
    """
    if _nesting_depth(expressions) * len(expressions) > _MAX_SCANNED_CHARACTERS:
        raise MalformedEvent("an expression nests too deeply")
    stack = [
        _outermost_calls(expressions)
    ]  # no recursion, because long chains of ORs nest deeper than Python's stack
    while stack:
        call = next(stack[-1], None)
        if call is None:
            stack.pop()
            continue
        name, arguments = call
        if name:
            yield _without_phase(name)
        stack.append(_outermost_calls(arguments))


def _nesting_depth(expressions: str) -> int:
    """Return the largest number of open parentheses at any place of a string."""
    depth = deepest = 0
    for match in _PARENTHESIS.finditer(expressions):
        depth += 1 if match[0] == "(" else -1
        deepest = max(deepest, depth)
    return deepest


def _outermost_calls(expressions: str) -> Iterator[tuple[str, str]]:
    """Yield name and arguments of the outermost calls; the name is "" for parentheses that group an expression."""
    for item in _split_expressions(expressions):
        yield from _calls_of_item(item)


def _calls_of_item(item: str) -> Iterator[tuple[str, str]]:
    """Yield name and arguments of the outermost calls of one expression."""
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


def _without_phase(name: str) -> str:
    """Return a function's name in lower case without the phase of an aggregate: ``partial_sum`` -> ``sum``."""
    lower = name.lower()
    phase = next((phase for phase in _PHASES if lower.startswith(phase)), "")
    return lower.removeprefix(phase)


def _name_before(item: str, start: int, opening: int) -> str:
    # Matches the reversed string, because a search from the start would take quadratic time.
    match = _NAME_CHARACTERS.match(item[start:opening][::-1])
    word = "" if match is None else match[0][::-1]
    first = _NAME_START.search(word)
    return "" if first is None else word[first.start() :]


def _is_attribute(item: str) -> bool:
    """Return whether the item is a plain column: its only attribute id (``#12``) is at its end."""
    if item.startswith(("(", "-", "NOT ", "cast(")):
        return False
    first = _ATTRIBUTE_END.search(item)
    return first is not None and first.end() == len(item)


def _alias_at(item: str) -> int | None:
    """Return the index of ``AS name`` at the end of the item; None if the expression has no alias."""
    depth = 0
    for match in _BRACKET_OR_ALIAS.finditer(item):
        if match[0] in "([":
            depth += 1
        elif match[0] in ")]":
            depth -= 1
        elif depth == 0:
            return match.start()
    return None


def _closing(item: str, opening: int) -> int:
    """Return the index of the parenthesis that closes the one at ``opening``, or the string's length if none does."""
    depth = 0
    for match in _PARENTHESIS.finditer(item, opening):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.start()
    return len(item)


def _split_expressions(expressions: str) -> Iterator[str]:
    """Split a string at the commas and brackets outside of parentheses."""
    depth, begin = 0, 0
    for match in _PARENTHESIS_OR_SEPARATOR.finditer(expressions):
        if match[0] == "(":
            depth += 1
        elif match[0] == ")":
            depth -= 1
        elif depth <= 0:
            yield expressions[begin : match.start()]
            begin = match.end()
    yield expressions[begin:]
