"""Spark's ``UTF8String`` methods for bytes that need not be valid UTF-8. The first byte of a character gives its length.

A byte that cannot begin a character is a character of its own. For example, ``b"a\\x80\\xc3\\xa9"`` has three characters:
"a", the stray byte 80, and "é". The last character may be truncated, as in ``b"a\\xc3"``. If Spark would then read the bytes
after the end of the string, which are arbitrary memory, the functions raise ``ReadPastEnd``.
"""

from __future__ import annotations

import itertools

from kquery_spark.kernels.edit_distance import edit_distance
from kquery_spark.kernels.utf8 import java_string
from kquery_spark.types.units import INT32_MAX

_WIDTHS = bytes(
    2 if 0xC2 <= b <= 0xDF else 3 if 0xE0 <= b <= 0xEF else 4 if 0xF0 <= b <= 0xF4 else 1 for b in range(256)
)


class ReadPastEnd(Exception):
    """Spark would read memory after a string that ends in the middle of a character, so its answer is undefined."""


def character_bounds(value: bytes) -> list[int]:
    """Return the offset of each character and the end of the last one, which may lie after the end of the string."""
    bounds, at = [0], 0
    while at < len(value):
        at += _WIDTHS[value[at]]
        bounds.append(at)
    return bounds


def length(value: bytes) -> int:
    """Count characters, as ``numChars`` does."""
    return len(character_bounds(value)) - 1


def _cut(value: bytes, start: int, end: int) -> bytes:
    if end > len(value):
        raise ReadPastEnd
    return value[start:end]


def slice_characters(value: bytes, start: int, until: int) -> bytes:
    """Return the characters from ``start`` to ``until`` (exclusive), counted from 0, as ``substring(start, until)`` does."""
    if until <= start or start >= len(value):
        return b""
    bounds = character_bounds(value)
    last = len(bounds) - 1
    return _cut(value, bounds[min(max(start, 0), last)], bounds[min(max(until, 0), last)])


def substring(value: bytes, position: int, count: int = INT32_MAX) -> bytes:
    """SUBSTRING with a position that counts from 1, or from the end if it is negative (``substringSQL``)."""
    start = position - 1 if position > 0 else length(value) + position if position < 0 else 0
    return slice_characters(value, start, min(max(start + count, -INT32_MAX - 1), INT32_MAX))


def first_characters(value: bytes, count: int) -> bytes:
    """LEFT, which Spark rewrites as ``substring(value, 1, count)``."""
    return substring(value, 1, count)


def last_characters(value: bytes, count: int) -> bytes:
    """RIGHT, which Spark rewrites as ``substring(value, -count)``."""
    return substring(value, -count) if count > 0 else b""


def ascii_code(value: bytes) -> int:
    """ASCII: the code point of the first character as a Java string."""
    first = java_string(slice_characters(value, 0, 1))
    return ord(first[0]) if first else 0


def reverse(value: bytes) -> bytes:
    """``reverse``. If the last character is truncated, Spark writes before the first byte of its result: undefined."""
    bounds = character_bounds(value)
    if bounds[-1] > len(value):
        raise ReadPastEnd
    return b"".join(value[a:b] for a, b in zip(bounds[-2::-1], bounds[:0:-1], strict=True))


def _padding(value: bytes, width: int, pad: bytes) -> bytes | None:
    """Return the bytes that pad a string to ``width`` characters; None if the string is long enough and must be cut."""
    missing = width - length(value)
    if missing <= 0 or not pad:
        return None
    times, remainder = divmod(missing, length(pad))
    return pad * times + slice_characters(pad, 0, remainder)


def lpad(value: bytes, width: int, pad: bytes = b" ") -> bytes:
    """LPAD: pad or cut to ``width`` characters on the left."""
    filler = _padding(value, width, pad)
    return slice_characters(value, 0, width) if filler is None else filler + value


def rpad(value: bytes, width: int, pad: bytes = b" ") -> bytes:
    """RPAD: pad or cut to ``width`` characters on the right."""
    filler = _padding(value, width, pad)
    return slice_characters(value, 0, width) if filler is None else value + filler


def index_of(value: bytes, needle: bytes, start: int = 0) -> int:
    """``indexOf``: the 0-based character at which ``needle`` begins, searched from character ``start`` on; -1 if absent."""
    if not needle:
        return 0
    for character, at in enumerate(character_bounds(value)):
        if character >= start and value.startswith(needle, at):
            return character
    return -1


def instr(value: bytes, needle: bytes) -> int:
    """INSTR: the 1-based character at which ``needle`` begins; 0 if absent."""
    return index_of(value, needle) + 1


def locate(needle: bytes, value: bytes, start: int = 1) -> int:
    """LOCATE: the 1-based character at which ``needle`` begins; 0 if absent or if ``start`` is less than 1."""
    return index_of(value, needle, start - 1) + 1 if start > 0 else 0


def _is_trimmed(value: bytes, start: int, end: int, characters: bytes) -> bool:
    """Return True if the bytes of a character occur in ``characters``, even across the boundaries of its characters."""
    if value[start:end] not in characters:
        return False
    _cut(value, start, end)
    return True


def trim_left(value: bytes, characters: bytes | None = None) -> bytes:
    """``trimLeft``. Without ``characters`` it removes space bytes, even those inside of a malformed character."""
    if characters is None:
        return value.lstrip(b" ")
    bounds = character_bounds(value)
    for start, end in itertools.pairwise(bounds):
        if not _is_trimmed(value, start, end, characters):
            return value[start:]
    return b""


def trim_right(value: bytes, characters: bytes | None = None) -> bytes:
    """``trimRight``: removes trailing characters that are in ``characters`` (default: spaces)."""
    if characters is None:
        return value.rstrip(b" ")
    bounds = character_bounds(value)
    for start, end in zip(bounds[-2::-1], bounds[:0:-1], strict=True):
        if not _is_trimmed(value, start, end, characters):
            return value[:end]
    return b""


def trim(value: bytes, characters: bytes | None = None) -> bytes:
    """``trim`` of both sides."""
    return trim_right(trim_left(value, characters), characters)


def replace(value: bytes, search: bytes, replacement: bytes = b"") -> bytes:
    """REPLACE on bytes; an empty ``search`` leaves the string unchanged."""
    return value.replace(search, replacement) if search else value


def substring_index(value: bytes, delimiter: bytes, count: int) -> bytes:
    """SUBSTRING_INDEX (``subStringIndex``): the part before the ``count``-th delimiter, or after it from the right.

    Delimiters may overlap: after a match the search continues one byte later, so "aaa" contains "aa" twice.
    """
    if not delimiter or count == 0:
        return b""
    at = -1 if count > 0 else len(value) - len(delimiter) + 1
    for _ in range(min(abs(count), len(value) + 1)):
        at = (
            value.find(delimiter, at + 1)
            if count > 0
            else value.rfind(delimiter, 0, max(at - 1 + len(delimiter), 0))
        )
        if at < 0:
            return value
    return value[:at] if count > 0 else value[at + len(delimiter) :]


def overlay(value: bytes, replacement: bytes, position: int, count: int = -1) -> bytes:
    """OVERLAY (``Overlay.calculate``); a negative ``count`` means the number of characters of the replacement."""
    size = count if count >= 0 else length(replacement)
    return substring(value, 1, position - 1) + replacement + substring(value, position + size)


_SOUNDEX = b"01230127022455012623017202"  # the digit of each letter from A to Z; "7" (H and W) is skipped


def soundex(value: bytes) -> bytes:
    """SOUNDEX: a letter and three digits; a string that does not begin with an ASCII letter is returned unchanged."""
    letters = value.upper()
    if not letters[:1].isalpha():
        return value
    code, last = letters[:1], _SOUNDEX[letters[0] - 65]
    for letter in letters[1:]:
        digit = _SOUNDEX[letter - 65] if 65 <= letter <= 90 else None
        if digit is None:
            last = ord("0")
        elif digit != ord("7"):
            if digit not in (ord("0"), last):
                code += bytes([digit])
            last = digit
    return code[:4].ljust(4, b"0")


def find_in_set(value: bytes, members: bytes) -> int:
    """FIND_IN_SET: the 1-based position of ``value`` in a comma-separated list; 0 if absent or if it has a comma."""
    parts = members.split(b",")
    return parts.index(value) + 1 if b"," not in value and value in parts else 0


def levenshtein(first: bytes, second: bytes) -> int:
    """LEVENSHTEIN distance in characters."""
    ours, theirs = _characters(first), _characters(second)
    _check_comparable(first, ours, theirs)
    _check_comparable(second, theirs, ours)
    return edit_distance(*([int.from_bytes(c, "big") for c in side] for side in (ours, theirs)))


def _characters(value: bytes) -> list[bytes]:
    bounds = character_bounds(value)
    return [value[a:b] for a, b in itertools.pairwise(bounds)]


def _check_comparable(value: bytes, characters: list[bytes], others: list[bytes]) -> None:
    """Raise ReadPastEnd if the last character is truncated and another one begins with the same byte.

    Spark compares characters by their first bytes first, so only then does it read after the end of the string.
    """
    if character_bounds(value)[-1] > len(value) and any(other[0] == characters[-1][0] for other in others):
        raise ReadPastEnd
