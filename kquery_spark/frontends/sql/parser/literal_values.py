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
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUFFIX = re.compile(r"(bd|[dflsy])$", re.IGNORECASE)
_INTEGER_TYPES = (("tinyint", 8), ("smallint", 16), ("int", 32), ("bigint", 64))
_INTEGER_SUFFIX = {"Y": "tinyint", "S": "smallint", "L": "bigint"}
_FLOATING_SUFFIX = {"D": "double", "F": "float"}
MAX_PRECISION = 38


def unescape(body: str) -> str:
    r"""Return the value of a quoted string, with its backslash escapes replaced as in Spark.

    The escapes are ``\n`` and similar ones, three octal digits, ``\uXXXX``, and ``\UXXXXXXXX``. ``\%`` and ``\_`` keep their
    backslash, because they are escapes of LIKE. Before any other character, the backslash is dropped.
    """
    if "\\" not in body:
        return body
    text = _ESCAPE.sub(_escaped_character, body)
    # \uD83D\uDE00 writes one character as a pair of UTF-16 surrogates; Java encodes an unpaired one as a question mark.
    paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _SURROGATE.sub("?", paired)


def _escaped_character(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if octal:
        return chr(int(octal, 8))
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code <= 0x10FFFF else _surrogates_beyond_unicode(code)
    return _ONE_CHARACTER.get(other, other)


def _surrogates_beyond_unicode(code: int) -> str:
    """Return the two UTF-16 units that Spark computes for a code point above U+10FFFF."""
    offset = code - 0x10000
    return chr((0xD800 + (offset >> 10)) & 0xFFFF) + chr(0xDC00 + (offset & 0x3FF))


def number_literal(text: str, pos: int, *, negative: bool = False) -> Expression | str:
    """Return the literal node of a number, or the error message if it is out of range.

    Without a suffix, an integer is an int, a bigint or a decimal, depending on its size; a number with a point is a decimal,
    and one with an exponent is a double. The suffixes are L, S and Y (integers), D (double), F (float), and BD (decimal).
    The sign is part of the literal, so ``-2147483648`` is an int.
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
    """Return an int, a bigint or a decimal: the first type that the number fits."""
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
    """Return a decimal with the digits as written: ``1.50`` has scale 2, and ``1e2BD`` is 100 with scale 0."""
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
