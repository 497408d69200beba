"""Splits formats of FORMAT_STRING into literal strings and directives. A directive renders one argument in its width."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from kquery_spark.errors import Unsupported

_DIRECTIVE = re.compile(r"%(?:([1-9][0-9]?)\$)?([-+ 0,]*)([1-9][0-9]{0,3})?(?:\.([0-9]{1,2}))?([a-zA-Z%])")


@dataclass(frozen=True)
class Directive:
    """One directive of a format.

    argument: its position. precision: the number of characters or decimals; None if the directive does not specify it.
    """

    argument: int
    flags: str
    width: int
    precision: int | None
    conversion: str

    def padded(self, text: str) -> str:
        """Pad a string with spaces to the directive's width, which counts UTF-16 code units."""
        width = self.width if text.isascii() else self.width - sum(c > "\uffff" for c in text)
        return text.ljust(width) if "-" in self.flags else text.rjust(width)

    def cut(self, text: str) -> str:
        """Cut a string to the directive's precision, if it has one."""
        if self.precision is None or len(text) < self.precision:
            return text
        if not text.isascii() and max(text) > "\uffff":
            raise Unsupported("FORMAT_STRING does not cut strings with characters beyond 16 bits")
        return text[: self.precision]

    def signed(self, digits: str, negative: bool) -> str:
        """Add the sign to digits and pad them to the directive's width, with zeros if it has the flag 0."""
        sign = self.sign(negative)
        if "0" in self.flags:
            digits = digits.rjust(self.width - len(sign), "0")
        return self.padded(sign + digits)

    def sign(self, negative: bool) -> str:
        """Return the characters before the digits of a number: its sign, or nothing."""
        return "-" if negative else "+" if "+" in self.flags else " " if " " in self.flags else ""


@functools.lru_cache(maxsize=256)
def directives(source: str) -> tuple[str | Directive, ...]:
    """Split a format into literal strings and directives; raises Unsupported for unknown directives."""
    parts: list[str | Directive] = []
    at, ordinary = 0, 0
    while at < len(source):
        following = source.find("%", at)
        if following != at:
            parts.append(source[at:] if following < 0 else source[at:following])
            at = len(source) if following < 0 else following
            continue
        match = _DIRECTIVE.match(source, at)
        if match is None:
            raise _unknown(source)
        at = match.end()
        if match[0] in ("%%", "%n"):
            parts.append("%" if match[0] == "%%" else "\n")
            continue
        position = int(match[1]) if match[1] else (ordinary := ordinary + 1)
        parts.append(_directive(match, position, source))
    return tuple(parts)


def _directive(match: re.Match[str], position: int, source: str) -> Directive:
    flags, conversion = match[2], match[5]
    allowed = {"s": "-", "b": "-", "d": "-+ 0,", "f": "-+ 0,", "x": "-0", "X": "-0"}.get(conversion)
    if allowed is None or set(flags) - set(allowed) or len(set(flags)) < len(flags):
        raise _unknown(source)
    if {"-", "0"} <= set(flags) or {"+", " "} <= set(flags) or (match[3] is None and set("-0") & set(flags)):
        raise _unknown(source)  # Java raises an error
    if match[4] is not None and conversion not in "sf":
        raise _unknown(source)
    precision = None if match[4] is None else int(match[4])
    return Directive(position, flags, int(match[3] or 0), precision, conversion)


def _unknown(source: str) -> Unsupported:
    return Unsupported(
        f"the format {source!r} of FORMAT_STRING has a directive that the engine does not know"
    )
