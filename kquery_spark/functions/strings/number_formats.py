"""Number formats of TO_CHAR, TO_NUMBER and TRY_TO_NUMBER, such as ``S999,990.00``."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.functions.math.decimal_parts import DecimalParts
from kquery_spark.kernels.digit_layouts import DIGIT, digit_cells, digit_counts, filled_layouts
from kquery_spark.kernels.text import if_else
from kquery_spark.types import names as t

_TOKEN = re.compile(r"[09]+|[.DG,$S]|MI|PR")
_ORDER = re.compile(r"<?[MS]?[$]?(?:d(?:,d)*)?\.?d?[MS>]?")
_MAX_PRECISION = 38
_TOO_LONG = -1  # replaces the number of digits for numbers with more digits than the format
_SPACES = r"[\t-\r\x1c-\x20]*"  # Java's white space
_NO_DIGITS = r"[-+$<>,\t-\r\x1c-\x20]"
_WITHOUT_DIGITS = pa.array(["", "."])


@dataclass(frozen=True)
class Digits:
    """A run of digits of a format: exactly ``count`` digits, or at most that number."""

    count: int
    exactly: bool


Token = str | tuple[Digits, ...]
"""A sign, given by its letter (``<`` and ``>`` for PR), or the runs of digits between thousands separators."""


@dataclass(frozen=True)
class NumberFormat:
    """A parsed format: its tokens in order, and the precision and scale of the numbers that it writes.

    reading: a regular expression for the strings that it parses.
    """

    tokens: tuple[Token, ...]
    precision: int
    scale: int
    reading: str

    def parse(self, strings: pa.Array) -> pa.Array:
        """Parse strings of the format to numbers; NULL for other strings."""
        if pc.any(pc.invert(pc.string_is_ascii(strings))).as_py():
            raise Unsupported("TO_NUMBER of strings that are not ASCII is not supported")
        digits = pc.replace_substring_regex(strings, _NO_DIGITS, "")
        is_number = pc.match_substring_regex(strings, rf"\A(?:{self.reading})\z")
        is_number = pc.and_(is_number, pc.invert(pc.is_in(digits, _WITHOUT_DIGITS)))
        opened, closed = (pc.match_substring(strings, sign) for sign in "<>")
        is_negative = pc.or_(closed, pc.match_substring(strings, "-"))
        signed = pc.binary_join_element_wise(pc.if_else(is_negative, "-", ""), digits, "")
        is_number = pc.and_(is_number, pc.equal(opened, closed))
        return if_else(is_number, signed, pa.scalar(None, t.STRING)).cast(
            t.decimal(self.precision, self.scale)
        )

    def write(self, value: Decimal) -> str:
        """Write a number in the format; if it has more digits than the format, all digits are ``#``."""
        whole, _, fraction = format(value.copy_abs(), "f").partition(".")
        whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
        if len(whole) > self.precision - self.scale or len(fraction) > self.scale:
            return _layout(self, None, value < 0)
        form = _layout(self, len(whole), value < 0).replace(DIGIT, "%s")
        return form % (*whole, *fraction.ljust(self.scale, "0"))

    def write_all(self, numbers: DecimalParts, mask: Any) -> pa.Array:
        """Write all numbers at once, grouped by their layout; NULL for rows in ``mask``."""
        unit = 10 ** max(numbers.scale - self.scale, 0)
        counts = digit_counts(numbers.whole)
        is_too_long = (counts > self.precision - self.scale) | (numbers.fraction % unit != 0)
        cells = digit_cells(numbers.whole, numbers.fraction // unit, min(numbers.scale, self.scale))
        zeros = np.full((len(counts), max(self.scale - numbers.scale, 0)), ord("0"), np.uint8)
        keys = np.where(is_too_long, _TOO_LONG, counts) * 2 + numbers.negative
        return filled_layouts(keys, self._layout_of_key, np.hstack([cells, zeros]), mask)

    def _layout_of_key(self, key: int) -> str:
        whole_digits, negative = key >> 1, bool(key & 1)
        return _layout(self, None if whole_digits == _TOO_LONG else whole_digits, negative)


@functools.lru_cache(maxsize=256)
def number_format(source: str) -> NumberFormat:
    """Parse a format; raises Unsupported for one that Spark does not accept either."""
    # ``shape`` abbreviates the format, so that one regular expression can check the order of its parts: ``S999,990.00``
    # becomes ``Sd,d.d``. Runs of digits with only thousands separators between them form one token.
    tokens: list[Token] = []
    behind_point, shape = False, ""
    for piece in _pieces(source):
        if piece[0] in "09":
            run = Digits(len(piece), piece[0] == "0" and not behind_point)
            last = tokens[-1] if shape[-1:] == "," and tokens else ""
            if isinstance(last, tuple):
                tokens[-1] = (*last, run)
            else:
                tokens.append((run,))
            shape += "d"
        elif piece in (",", "G"):
            shape += ","
        elif piece == "PR":
            tokens = ["<", *tokens, ">"]
            shape = f"<{shape}>"
        else:
            tokens.append({"D": ".", "MI": "M"}.get(piece, piece))
            behind_point = behind_point or tokens[-1] == "."
            shape += str(tokens[-1])
    if not _ORDER.fullmatch(shape) or "d" not in shape or sum(map(shape.count, "MS>")) > 1:
        raise Unsupported(f"the number format {source!r} is not supported")
    counts = [sum(run.count for run in token) if isinstance(token, tuple) else 0 for token in tokens]
    scale = sum(counts[tokens.index(".") :]) if "." in tokens else 0
    if sum(counts) > _MAX_PRECISION:
        raise Unsupported(f"the number format {source!r} has more than {_MAX_PRECISION} digits")
    return NumberFormat(tuple(tokens), sum(counts), scale, _reading_pattern(tuple(tokens)))


def _pieces(source: str) -> Iterator[str]:
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise Unsupported(f"the number format {source!r} is not supported")
        yield match[0]
        at = match.end()


def _reading_pattern(tokens: tuple[Token, ...]) -> str:
    """Return a regular expression for strings of a format; signs and leading thousands are optional."""
    signs = {"M": "-?", "S": "[+-]?", "$": r"\$", "<": "<?", ">": ">?"}
    text, before = "", ""
    for token, following in zip(tokens, (*tokens[1:], ""), strict=True):
        if token == ".":
            behind = _reading_digits(following) if isinstance(following, tuple) else ""
            text += rf"(?:\.{behind})?"
        elif isinstance(token, str):
            text += signs[token]
        elif before != ".":
            text += _reading_digits(token)
        before = token if isinstance(token, str) else ""
    return text


def _reading_digits(runs: tuple[Digits, ...]) -> str:
    text = ""
    for i, run in enumerate(runs):
        may_lack = i and not any(before.exactly for before in runs[:i])
        least = run.count if run.exactly else 0
        text = (f"(?:{text},)?" if may_lack else f"{text}," if i else "") + (
            rf"{_SPACES}(?:[0-9]{_SPACES}){{{least},{run.count}}}"
        )
    return text


@functools.lru_cache(maxsize=4096)
def _layout(form: NumberFormat, whole_digits: int | None, negative: bool) -> str:
    """Return the layout of numbers with ``whole_digits`` digits before the point; None stands for too many digits."""
    if whole_digits is None:
        return _Writer(form, "#" * (form.precision - form.scale), "#" * form.scale, negative).text()
    return _Writer(form, DIGIT * whole_digits, DIGIT * form.scale, negative).text()


class _Writer:
    """Writes one number. If spaces fill the format before the digits, the sign is written right before the digits."""

    def __init__(self, form: NumberFormat, whole: str, fraction: str, negative: bool) -> None:
        self.form, self.negative, self.out = form, negative, ""
        self.before, self.after = iter(whole.rjust(form.precision - form.scale)), iter(fraction)

    def text(self) -> str:
        behind_point = False
        for token in self.form.tokens:
            if isinstance(token, tuple):
                self._digits(token, behind_point)
            elif token == ".":
                behind_point = True
                self.out = (self.out[:-1] + "0" if self.out.endswith(" ") else self.out) + "."
            else:
                self._sign(token)
        self._strip_point()
        return "0" if self.out in ("", "+", "-") else self.out

    def _digits(self, runs: tuple[Digits, ...], behind_point: bool) -> None:
        for i, run in enumerate(runs):
            if i and self.out[-1:].isdigit():
                self.out += ","
            elif i:
                self._space()
            for _ in range(run.count):
                digit = next(self.after if behind_point else self.before)
                if digit != " ":
                    self.out += digit
                elif run.exactly:
                    self.out += "0"
                else:
                    self._space()

    def _space(self) -> None:
        """Write a space, before the sign if that was written last."""
        signs = len(self.out) - len(self.out.rstrip("+-<"))
        at = len(self.out) - signs
        self.out = f"{self.out[:at]} {self.out[at:]}"

    def _sign(self, token: str) -> None:
        if token == "$":
            self.out += "$"
        elif token == "<":
            self.out += "<" if self.negative else ""
        elif token == "S":
            self._strip_point()
            self._behind_digits("-" if self.negative else "+")
        elif self.negative:
            self._strip_point()
            self._behind_digits("-" if token == "M" else ">")
        else:
            if token == ">":
                self._strip_point()
            self.out += " " if token == "M" else "  "

    def _behind_digits(self, sign: str) -> None:
        digits = self.out.rstrip(" ")
        self.out = digits + sign + self.out[len(digits) :]

    def _strip_point(self) -> None:
        """Replace a decimal point by a space if no digit follows it."""
        at = self.out.find(".")
        if at >= 0 and self.out[at + 1 : at + 2] in ("", " "):
            self.out = f"{self.out[:at]} {self.out[at + 1 :]}"
