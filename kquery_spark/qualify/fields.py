"""Reads and checks fields of events, because a log may be written, cut or damaged by other programs.

A missing or null value is read as 0, empty or None. A value of another type than Spark writes raises MalformedEvent. So no
number is NaN or infinite, and no string has characters that a page or a terminal cannot show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Record = Mapping[str, Any]

_LARGEST_NUMBER = 2**63  # exclusive limit of the JVM's long
_MAX_DIGITS = 19
_REPLACEMENT = 0xFFFD
# Control characters except tabs and line ends, because a terminal obeys them; surrogates, because UTF-8 cannot encode them.
_CONTROL = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))
_UNPRINTABLE = dict.fromkeys((*_CONTROL, *range(0xD800, 0xE000)), _REPLACEMENT)


class MalformedEvent(Exception):
    """An event, or a plan in one, that cannot be read; the message is a clause that says why."""


def printable(text: str) -> str:
    """Replace each character that a page or a terminal cannot show by U+FFFD."""
    return text if text.isascii() and text.isprintable() else text.translate(_UNPRINTABLE)


def string(record: Record, name: str, max_characters: int | None = None) -> str:
    """Read a string field; the result is printable and at most ``max_characters`` long."""
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedEvent(f"{name} is not a string")
    return printable(value[:max_characters])


def whole_number(record: Record, name: str) -> int | None:
    """Read an integer field, which may be written as a float or a string; None if it is missing or null."""
    value = record.get(name)
    if value is None:
        return None
    number = _parse_integer(value) if isinstance(value, str) else value
    # The comparison also rejects NaN.
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float)
        or not -_LARGEST_NUMBER <= number < _LARGEST_NUMBER
    ):
        raise MalformedEvent(f"{name} is not a number that Spark writes")
    return int(number)


def _parse_integer(numeral: str) -> int | None:
    digits = numeral.removeprefix("-")
    return int(numeral) if digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS else None


def required_number(record: Record, name: str) -> int:
    """Read an integer field; raises MalformedEvent if it is missing, because the event has no meaning without it."""
    value = whole_number(record, name)
    if value is None:
        raise MalformedEvent(f"{name} is missing")
    return value


def amount(record: Record, name: str) -> int:
    """Read a number of bytes or of units of time; 0 if it is missing or negative."""
    return max(0, whole_number(record, name) or 0)


def child(record: Record, name: str) -> Record:
    """Read a field that is a record; empty if it is missing or null."""
    value = record.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedEvent(f"{name} is not a record")
    return value


def items(record: Record, name: str) -> list[Any]:
    """Read a field that is a list; empty if it is missing or null."""
    value = record.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise MalformedEvent(f"{name} is not a list")
    return value


def records(record: Record, name: str) -> Iterator[Record]:
    """Yield the elements of a field that is a list of records."""
    for value in items(record, name):
        if not isinstance(value, dict):
            raise MalformedEvent(f"{name} has an element that is not a record")
        yield value
