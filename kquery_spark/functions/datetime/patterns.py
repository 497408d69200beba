"""Splits the patterns of Java's date formatter into fields and literals, and decides which of them the engine parses.

Example: ``yyyy-MM-dd HH:mm`` has the fields yyyy, MM, dd, HH and mm, and the literals "-", "-", " " and ":".
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence

from kquery_spark.errors import Unsupported
from kquery_spark.functions.datetime.calendar_names import HALVES_OF_DAY, MONTHS, MONTHS_SHORT

FIELD_WIDTHS = {
    **dict.fromkeys(("yy", "MM", "dd", "HH", "hh", "mm", "ss", "a"), 2),
    **dict.fromkeys(("M", "d", "H", "h", "m", "s", "MMMM"), 0),
    "yyyy": 4,
    "MMM": 3,
}
"""The width in characters of each field except fractions; 0 if it varies (numbers without leading zeros, long names)."""
FIELD_NAMES = {"MMM": MONTHS_SHORT, "MMMM": MONTHS, "a": HALVES_OF_DAY}
"""The names that stand for the values of a field."""
_PIECE = re.compile(r"'([^']+)'|([A-Za-z])\2*|([^A-Za-z'\[\]#{}]+)")
_MAX_PIECE_CHARACTERS = 9  # of a fraction or a literal


@functools.lru_cache(256)
def fields_and_literals(pattern: str) -> tuple[tuple[str, str], ...]:
    """Split a pattern into pairs (field, "") and ("", literal); raises Unsupported if the engine cannot parse by it."""
    pieces = split_pattern(pattern, _is_known)
    if not _is_unambiguous(pieces):
        raise Unsupported(f"the date format {pattern!r} is not supported")
    return tuple(pieces)


def split_pattern(pattern: str, is_known: Callable[[re.Match[str]], bool]) -> list[tuple[str, str]]:
    """Split a date pattern into pairs (field, "") and ("", literal); raises Unsupported for unknown pieces.

    is_known: takes the match of a field or literal, and returns whether the caller supports it.
    """
    pieces: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        match = _PIECE.match(pattern, at)
        if match is None or not is_known(match):
            raise Unsupported(f"the date format {pattern!r} is not supported")
        pieces.append((match[0] if match[2] else "", match[1] or match[3] or ""))
        at = match.end()
    return pieces


def _is_unambiguous(pieces: Sequence[tuple[str, str]]) -> bool:
    """Return whether the pattern has a year, no field twice, no two hour fields, and no digit that two fields could take."""
    fields = [field[0] for field, _ in pieces if field]
    if len(set(fields)) < len(fields) or "y" not in fields:
        return False
    if ("h" in fields) != ("a" in fields) or {"h", "H"} <= set(fields):
        return False
    return not any(_share_digits(before, after) for (before, _), (after, _) in itertools.pairwise(pieces))


def _is_known(piece: re.Match[str]) -> bool:
    """Return whether a piece of a pattern is a known field, or a short literal of ASCII characters."""
    text, is_field = piece[0], bool(piece[2])
    if is_field and text not in FIELD_WIDTHS and set(text) != {"S"}:
        return False
    return text.isascii() and len(text) <= _MAX_PIECE_CHARACTERS


def _share_digits(before: str, after: str) -> bool:
    """Return whether two neighbors are number fields between which Java divides digits by special rules."""
    if not (before and after) or before in FIELD_NAMES or after in FIELD_NAMES:
        return False
    return before[0] == "S" or after[0] in "yS" or not (FIELD_WIDTHS[before] and FIELD_WIDTHS[after])


def check_pattern(pattern: str) -> None:
    """Raise Unsupported if the engine cannot parse strings by a pattern."""
    fields_and_literals(pattern)


def fixed_width(pattern: str) -> int | None:
    """Return the number of bytes of the strings that a pattern describes; None if it varies."""
    widths = [
        FIELD_WIDTHS.get(field, 0) if field else len(literal)
        for field, literal in fields_and_literals(pattern)
    ]
    return sum(widths) if all(widths) else None
