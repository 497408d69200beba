"""What the parsers of JSON strings in Python share: blanks, strings with escapes, and the error.

``json_documents`` parses strings for the JSON functions, and ``sources/json/scanner.py`` parses lines of files. They differ
in the characters that a string may contain, in numbers and words, and in what follows a malformed string. The compiled loops
have counterparts for bytes in ``json_loops/tokens.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_BLANKS = re.compile(r"[ \t\r\n]*")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "/": "/", "\\": "\\", "'": "'"}
_HEX = re.compile(r"[0-9a-fA-F]{0,4}")


class MalformedJson(Exception):
    """A string is not valid JSON. certain: True if Jackson certainly cannot continue with the string after the error."""

    def __init__(self, certain: bool = True) -> None:
        super().__init__("malformed JSON")
        self.certain = certain


class BadCharacter(MalformedJson):
    """A string contains a character that it may not contain. following: the position where Jackson continues."""

    def __init__(self, following: int) -> None:
        super().__init__()
        self.following = following


def skip_blanks(text: str, at: int) -> int:
    """Return the position of the first character from ``at`` on that is not a blank."""
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def read_string(text: str, start: int, plain: Mapping[str, re.Pattern[str]]) -> tuple[str, int]:
    """Read the string whose opening quote is at ``start``; return it without its escapes, and the position after it.

    plain: for each quote, matches the characters before the next quote, backslash, or character that is not allowed. Escaped
    surrogates stay two characters (``pair_surrogates``). Raises BadCharacter.
    """
    quote = text[start]
    pattern = plain[quote]
    parts: list[str] = []
    at = start + 1
    while True:
        match = pattern.match(text, at)
        assert match is not None
        parts.append(match[0])
        at = match.end()
        mark = text[at : at + 1]
        if mark == quote:
            return "".join(parts), at + 1
        if mark != "\\":
            raise BadCharacter(at + 1)
        letter = text[at + 1 : at + 2]
        if letter == "u":
            digits = _HEX.match(text, at + 2)
            assert digits is not None
            if len(digits[0]) < 4:
                raise BadCharacter(digits.end() + 1)
            parts.append(chr(int(digits[0], 16)))
            at += 6
        elif letter in _ESCAPES:
            parts.append(_ESCAPES[letter])
            at += 2
        else:
            raise BadCharacter(at + 2)


def pair_surrogates(text: str) -> str:
    """Combine each high surrogate and the low surrogate after it to one character; others stay as they are."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
