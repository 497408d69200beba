"""Numbers by a format of digits: what TO_CHAR, TO_NUMBER and TRY_TO_NUMBER take, as ``S999,990.00``."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from kquery_spark.errors import Unsupported

_TOKEN = re.compile(r"[09]+|[.DG,$S]|MI|PR")
_ORDER = re.compile(r"<?[MS]?[$]?(?:d(?:,d)*)?\.?d?[MS>]?")
_MAX_PRECISION = 38


@dataclass(frozen=True)
class Digits:
    """A run of digits of a format; ``exactly`` so many, or at most."""

    count: int
    exactly: bool


Token = str | tuple[Digits, ...]
"""A sign by its letter (``<`` and ``>`` for PR), or the runs of digits between thousands separators."""


@dataclass(frozen=True)
class NumberFormat:
    """A format: its tokens in order, and the precision and scale of the numbers that it writes."""

    tokens: tuple[Token, ...]
    precision: int
    scale: int

    def parse(self, text: str) -> Decimal | None:
        """The number that a text of the format is; None for another text."""
        if not text.isascii():
            raise Unsupported("TO_NUMBER of texts that are not ASCII is not supported.")
        return _Parser(self, text).number()

    def write(self, value: Decimal) -> str:
        """The number in the format; ``#`` instead of its digits if it has more than the format."""
        return _Writer(self, value).text()


@functools.lru_cache(maxsize=256)
def number_format(source: str) -> NumberFormat:
    """The format of a text; Unsupported for one that Spark does not take either."""
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
        raise Unsupported(f"The number format {source!r} is not supported.")
    counts = [sum(run.count for run in token) if isinstance(token, tuple) else 0 for token in tokens]
    scale = sum(counts[tokens.index(".") :]) if "." in tokens else 0
    if sum(counts) > _MAX_PRECISION:
        raise Unsupported(f"The number format {source!r} has more than {_MAX_PRECISION} digits.")
    return NumberFormat(tuple(tokens), sum(counts), scale)


def _pieces(source: str) -> Iterator[str]:
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise Unsupported(f"The number format {source!r} is not supported.")
        yield match[0]
        at = match.end()


class _Parser:
    """Reads one text: signs may be left out, spaces among the digits are skipped."""

    def __init__(self, form: NumberFormat, text: str) -> None:
        self.form, self.text, self.at = form, text, 0
        self.before = self.after = ""
        self.behind_point = self.negative = self.opened = self.closed = False

    def number(self) -> Decimal | None:
        if (
            not all(map(self._take, self.form.tokens))
            or self.at < len(self.text)
            or self.opened != self.closed
        ):
            return None
        if not self.before and not self.after:
            return None
        sign = "-" if self.negative else ""
        return Decimal(f"{sign}{self.before or '0'}.{self.after.ljust(self.form.scale, '0')}")

    def _take(self, token: Token) -> bool:
        """Read what stands for a token; False if the text does not match."""
        if isinstance(token, tuple):
            return self._digits(token)
        character = self.text[self.at : self.at + 1]
        if character == "":
            return True
        if token == "$":
            self.at += 1
            return character == "$"
        if character not in {"M": "-", "S": "+-"}.get(token, token):
            return True
        self.at += 1
        if token == ".":
            self.behind_point = True
        elif token == "<":
            self.opened = True
        elif token == ">":
            if not self.opened:
                return False
            self.closed = True
        self.negative ^= character in "->"
        return True

    def _digits(self, runs: tuple[Digits, ...]) -> bool:
        start = self.at
        while self.at < len(self.text) and (self.text[self.at].isdigit() or self.text[self.at] in _SKIPPED):
            self.at += 1
        groups = ["".join(filter(str.isdigit, group)) for group in self.text[start : self.at].split(",")]
        if self.behind_point:
            self.after += "".join(groups)
        else:
            self.before += "".join(groups)
        if len(groups) > len(runs):
            return False
        sizes = [0] * (len(runs) - len(groups)) + [len(group) for group in groups]
        return all(
            size == run.count if run.exactly else size <= run.count
            for size, run in zip(sizes, runs, strict=True)
        )


_SKIPPED = ", \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f"  # commas, and Java's white space


class _Writer:
    """Writes one number; a sign stands beside the digits, where spaces fill the format."""

    def __init__(self, form: NumberFormat, value: Decimal) -> None:
        self.form, self.negative, self.out = form, value < 0, ""
        whole, _, fraction = format(value.copy_abs(), "f").partition(".")
        whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
        room = form.precision - form.scale
        if len(whole) > room or len(fraction) > form.scale:
            whole, fraction = "#" * room, "#" * form.scale
        self.before, self.after = iter(whole.rjust(room)), iter(fraction.ljust(form.scale, "0"))

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
        """A space, before a sign that stands last."""
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
        """Blank a point that no digit follows."""
        at = self.out.find(".")
        if at >= 0 and self.out[at + 1 : at + 2] in ("", " "):
            self.out = f"{self.out[:at]} {self.out[at + 1 :]}"
