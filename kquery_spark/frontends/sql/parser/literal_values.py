"""The values of string and number literals, by Spark's rules."""

from __future__ import annotations

import math
import re
import struct

from kquery_spark.frontends.sql.ast.expressions import (
    DecimalLiteral,
    Expression,
    FloatingLiteral,
    IntegerLiteral,
)

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ONE_CHARACTER = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_SUFFIX = re.compile(r"(bd|[dflsy])$", re.IGNORECASE)
_INTEGER_TYPES = (("tinyint", 8), ("smallint", 16), ("int", 32), ("bigint", 64))
_INTEGER_SUFFIX = {"Y": "tinyint", "S": "smallint", "L": "bigint"}
_FLOATING_SUFFIX = {"D": "double", "F": "float"}
MAX_PRECISION = 38


def unescape(body: str) -> str:
    r"""The characters a quoted string stands for.

    Backslash escapes as in Spark: ``\n`` and its like, three octal digits, ``\uXXXX``, ``\UXXXXXXXX``; ``\%``
    and ``\_`` keep their backslash (they are escapes of LIKE); before anything else the backslash is dropped.
    """
    if "\\" not in body:
        return body
    text = _ESCAPE.sub(_escaped_character, body)
    # \uD83D\uDE00 spells one character in UTF-16 halves, as in Java.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped_character(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if octal:
        return chr(int(octal, 8))
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code <= 0x10FFFF else "\ufffd"
    return _ONE_CHARACTER.get(other, other)


def number_literal(text: str, pos: int, *, negative: bool = False) -> Expression | str:
    """The literal node for a number's text, or the sentence of its error.

    Without suffix: int, bigint or decimal by size, decimal with a point, double with an exponent. Suffixes:
    L S Y (integers), D (double), F (float), BD (decimal). The sign belongs to the literal, so that
    ``-2147483648`` is an int.
    """
    has_suffix = _SUFFIX.search(text)
    suffix = has_suffix[0].upper() if has_suffix else ""
    digits = ("-" if negative else "") + text[: len(text) - len(suffix)]
    if suffix in _INTEGER_SUFFIX:
        return _typed_integer(digits, _INTEGER_SUFFIX[suffix], pos)
    if suffix in _FLOATING_SUFFIX:
        return _floating(digits, _FLOATING_SUFFIX[suffix], pos)
    if suffix != "BD" and "e" in digits.lower():
        return _floating(digits, "double", pos)
    if suffix == "BD" or "." in digits or len(digits) > MAX_PRECISION + 1:
        return _decimal(digits, pos)
    return _integer(digits, pos)


def _integer(digits: str, pos: int) -> Expression | str:
    """An int, bigint or decimal, the first that the number fits."""
    value = int(digits)
    for name, bits in _INTEGER_TYPES[2:]:
        if _fits(value, bits):
            return IntegerLiteral(value, name, pos=pos)
    return _decimal(digits, pos)


def _typed_integer(digits: str, name: str, pos: int) -> Expression | str:
    bits = dict(_INTEGER_TYPES)[name]
    if len(digits) > 64 or not _fits(int(digits), bits):
        return f"{digits} is out of range for {name}"
    return IntegerLiteral(int(digits), name, pos=pos)


def _fits(value: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _floating(digits: str, name: str, pos: int) -> Expression | str:
    value = float(digits)
    if name == "float":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.inf
    if math.isinf(value):
        return f"{digits} is out of range for {name}"
    return FloatingLiteral(value, name, pos=pos)


def _decimal(digits: str, pos: int) -> Expression | str:
    """A decimal keeps its digits as written (``1.50`` has scale 2); a positive exponent is written out."""
    mantissa, _, exponent = digits.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    if len(exponent) > 6 or abs(int(exponent or "0")) > 1000 or len(digits) > 400:
        return f"{digits} has more than {MAX_PRECISION} digits"
    scale = len(fraction) - int(exponent or "0")
    unscaled = int(whole + fraction)
    if scale < 0:
        unscaled, scale = unscaled * 10**-scale, 0
    literal = DecimalLiteral(unscaled, scale, pos=pos)
    if literal.precision > MAX_PRECISION:
        return f"{digits} has more than {MAX_PRECISION} digits"
    return literal
