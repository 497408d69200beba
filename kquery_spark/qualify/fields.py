"""Fields of events, which may be missing or have any type: a log is a file that other programs write, cut and damage.

A value that is missing or null is 0, empty or None. A value of another type than Spark writes is a MalformedEvent. So no
number is NaN or infinite, and no string has characters that a page or a terminal cannot show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Record = Mapping[str, Any]

_LARGEST_NUMBER = 2**63  # of the JVM
_MOST_DIGITS = 19
_REPLACEMENT = 0xFFFD
# Control characters but tab and ends of lines, which a terminal obeys, and surrogates, which UTF-8 cannot encode.
_CONTROL = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))
_UNPRINTABLE = dict.fromkeys((*_CONTROL, *range(0xD800, 0xE000)), _REPLACEMENT)


class MalformedEvent(Exception):
    """An event, or a plan in one, that cannot be read; the message is a clause that says why."""


def printable(text: str) -> str:
    """The string with U+FFFD for each character that a page or a terminal cannot show."""
    return text if text.isascii() and text.isprintable() else text.translate(_UNPRINTABLE)


def string(record: Record, name: str, most_characters: int | None = None) -> str:
    """A string field, printable and cut to a number of characters."""
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedEvent(f"{name} is not a string")
    return printable(value[:most_characters])


def whole_number(record: Record, name: str) -> int | None:
    """An integer field, which Spark also writes as a float or in a string; None if it is missing or null."""
    value = record.get(name)
    if value is None:
        return None
    number = _parsed(value) if isinstance(value, str) else value
    # NaN is in no range
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float)
        or not -_LARGEST_NUMBER <= number < _LARGEST_NUMBER
    ):
        raise MalformedEvent(f"{name} is not a number that Spark writes")
    return int(number)


def _parsed(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


def required_number(record: Record, name: str) -> int:
    """An integer field without which the event has no meaning."""
    value = whole_number(record, name)
    if value is None:
        raise MalformedEvent(f"{name} is missing")
    return value


def amount(record: Record, name: str) -> int:
    """A count of bytes or of a unit of time; 0 if it is missing or negative."""
    return max(0, whole_number(record, name) or 0)


def child(record: Record, name: str) -> Record:
    """A field that is a record; empty if it is missing or null."""
    value = record.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MalformedEvent(f"{name} is not a record")
    return value


def items(record: Record, name: str) -> list[Any]:
    """A field that is a list; empty if it is missing or null."""
    value = record.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise MalformedEvent(f"{name} is not a list")
    return value


def records(record: Record, name: str) -> Iterator[Record]:
    """The elements of a field that is a list of records."""
    for value in items(record, name):
        if not isinstance(value, dict):
            raise MalformedEvent(f"{name} has an element that is not a record")
        yield value
