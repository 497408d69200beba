"""Function calls in the texts of plan nodes: ``Project [upper(s#1) AS u#2]`` calls ``upper``."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ATTRIBUTE_END = re.compile(r"#\d+L?")
# What Spark prints before the phases of an aggregate function.
_PHASES = ("partial_", "merge_", "finalmerge_")


def calls_in(text: str) -> Iterator[str]:
    """The functions that a text calls, in lower case, and for aggregates without the phase.

    Column names that look like calls (``sum(x)#12``, ``AS sum(x)#12``) do not count.
    """
    for item in _items(text):
        yield from _calls_of_item(item)


def _calls_of_item(item: str) -> Iterator[str]:
    """The calls of one expression."""
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
        inner = item[opening + 1 : closing]
        if name and not _ATTRIBUTE_END.match(item, closing + 1):
            yield _function(name)
            yield from calls_in(inner)
        elif not name:
            yield from calls_in(inner)
        at = closing + 1


def _function(name: str) -> str:
    """A name without the phase of an aggregate function."""
    lower = name.lower()
    phase = next((phase for phase in _PHASES if lower.startswith(phase)), "")
    return lower.removeprefix(phase)


def _name_before(item: str, start: int, opening: int) -> str:
    match = re.search(r"[A-Za-z_$][\w$.]*$", item[start:opening])
    return match[0] if match else ""


def _is_attribute(item: str) -> bool:
    """Whether the item is a column: it has one number, at its end."""
    marks = list(_ATTRIBUTE_END.finditer(item))
    return (
        len(marks) == 1 and marks[0].end() == len(item) and not item.startswith(("(", "-", "NOT ", "cast("))
    )


def _alias_at(item: str) -> int | None:
    """The index of ``AS name``, which ends the item; None if the expression has no alias."""
    depth = 0
    for at, character in enumerate(item):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif depth == 0 and character == " " and item.startswith(" AS ", at):
            return at
    return None


def _closing(text: str, opening: int) -> int:
    """The index of the parenthesis that closes the one at ``opening``; the length of the text if none does."""
    depth = 0
    for at in range(opening, len(text)):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")":
            depth -= 1
            if depth == 0:
                return at
    return len(text)


def _items(text: str) -> Iterator[str]:
    """The parts of a text between commas and brackets that are in no parentheses."""
    depth, begin = 0, 0
    for at, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif depth <= 0 and character in ",[]":
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]
