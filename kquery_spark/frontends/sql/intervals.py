"""Converts interval literals, in every syntax that Spark has, to months or microseconds, and prints them as SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from kquery_spark.frontends.sql.ast.expressions import IntervalLiteral

MONTH_UNITS = {"YEAR": 12, "MONTH": 1}
MICROSECOND_UNITS = {
    "WEEK": 7 * 86_400_000_000,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
#: Units of ``from TO to``, coarse to fine.
FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")
UNITS = frozenset(MONTH_UNITS) | frozenset(MICROSECOND_UNITS)
# The field of the resulting type that a unit falls into.
_FIELD_OF = {"WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND"}
_NUMBER = re.compile(r"\s*([+-]?)\s*(\d*)(?:(\.)(\d*))?\s*", re.ASCII)
_TEXT_ITEM = re.compile(r"\s*([+-]?\s*(?:\d+(?:\.\d*)?|\.\d+))\s+([a-zA-Z]+)(?=\s|$)", re.ASCII)
_YEAR_TO_MONTH = re.compile(r"\s*([+-]?)(\d+)-(\d+)\s*", re.ASCII)
# Maximum digits of the first field, as in Spark's IntervalUtils; the other fields have one or two.
_FIRST_FIELD_DIGITS = {"DAY": 9, "HOUR": 10, "MINUTE": 12}
_FRACTION_DIGITS = 9
_FIELD_LIMIT = {"HOUR": 24, "MINUTE": 60, "SECOND": 60}


class BadInterval(ValueError):
    """Raised for an invalid interval; the message gives the reason."""


def unit_of(word: str) -> str | None:
    """The unit a word names (``days`` -> DAY), or None."""
    upper = word.upper()
    if upper in UNITS:
        return upper
    return upper[:-1] if upper.endswith("S") and upper[:-1] in UNITS else None


def from_units(items: list[tuple[str, str, bool]], pos: int) -> IntervalLiteral:
    """The interval of ``[(number text, unit, negate)]``: ``INTERVAL 1 year '2' months``.

    Raises BadInterval when year-month and day-time units are mixed, for fractions of anything but seconds and
    when the result does not fit Spark's types.
    """
    months = [unit in MONTH_UNITS for _, unit, _ in items]
    if any(months) and not all(months):
        raise BadInterval("an interval cannot mix years or months with days or smaller units")
    sizes = MONTH_UNITS if months[0] else MICROSECOND_UNITS
    order = ("YEAR", "MONTH") if months[0] else FIELDS
    amount = 0
    for text, unit, negate in items:
        value = _scaled(text, unit, sizes[unit])
        amount += -value if negate else value
    used = sorted({_FIELD_OF.get(unit, unit) for _, unit, _ in items}, key=order.index)
    return _literal_in_range(amount, used[0], used[-1], pos)


def from_text(text: str, pos: int) -> IntervalLiteral:
    """The interval of one string: ``INTERVAL '1 day 2 hours'``."""
    units_text = re.sub(r"\A\s*interval\s+", "", text, count=1, flags=re.IGNORECASE)
    items: list[tuple[str, str, bool]] = []
    at = 0
    while match := _TEXT_ITEM.match(units_text, at):
        unit = unit_of(match[2])
        if unit is None:
            raise BadInterval(f"'{match[2]}' is not a unit of an interval")
        items.append((match[1], unit, False))
        at = match.end()
    if units_text[at:].strip() or not items:
        raise BadInterval(f"'{text}' is not an interval: expected numbers with units, as in '1 day 2 hours'")
    return from_units(items, pos)


def from_range(text: str, start: str, end: str, pos: int, *, negate: bool = False) -> IntervalLiteral:
    """The interval of ``INTERVAL 'text' start TO end``, such as ``'1 02:03' DAY TO MINUTE``."""
    sign = -1 if negate else 1
    if (start, end) == ("YEAR", "MONTH"):
        return _literal_in_range(sign * _year_to_month(text), start, end, pos)
    if start not in FIELDS or end not in FIELDS or FIELDS.index(start) >= FIELDS.index(end):
        raise BadInterval(f"unknown interval {start} TO {end}")
    return _literal_in_range(sign * _day_to_second(text, start, end), start, end, pos)


def _year_to_month(text: str) -> int:
    """The months of ``'years-months'``."""
    match = _YEAR_TO_MONTH.fullmatch(text)
    if not match or len(match[3]) > 2 or int(match[3]) > 11 or len(match[2]) > 10:
        raise BadInterval(f"'{text}' is not an interval YEAR TO MONTH: expected 'years-months'")
    months = int(match[2]) * 12 + int(match[3])
    return -months if match[1] == "-" else months


def _day_to_second(text: str, start: str, end: str) -> int:
    """The microseconds of ``'days hours:minutes:seconds'`` with the fields from ``start`` to ``end``."""
    fields = FIELDS[FIELDS.index(start) : FIELDS.index(end) + 1]
    match = re.fullmatch(r"\s*(?P<sign>[+-]?)" + _pattern(fields) + r"\s*", text, re.ASCII)
    if not match:
        raise BadInterval(f"'{text}' is not an interval {start} TO {end}")
    for field in fields[1:]:
        if int(match[field]) >= _FIELD_LIMIT[field]:
            raise BadInterval(f"{field.lower()} {match[field]} is out of range in '{text}'")
    amount = sum(int(match[field]) * MICROSECOND_UNITS[field] for field in fields)
    if end == "SECOND" and match["fraction"]:
        amount += _fraction_micros(match["fraction"])
    return -amount if match["sign"] == "-" else amount


def _pattern(fields: Sequence[str]) -> str:
    """Return a regular expression for these fields: days, one space, and the other fields with colons between them."""
    pattern = rf"(?P<{fields[0]}>\d{{1,{_FIRST_FIELD_DIGITS[fields[0]]}}})"
    for before, field in pairwise(fields):
        pattern += (" " if before == "DAY" else ":") + rf"(?P<{field}>\d{{1,2}})"
    return pattern + (rf"(?:\.(?P<fraction>\d{{1,{_FRACTION_DIGITS}}}))?" if fields[-1] == "SECOND" else "")


def _fraction_micros(digits: str) -> int:
    """The microseconds of a fraction of a second; further digits are truncated, as in Spark."""
    return int(digits.ljust(6, "0")[:6])


def _scaled(text: str, unit: str, size: int) -> int:
    match = _NUMBER.fullmatch(text)
    if not match or not (match[2] or match[4]) or len(text) > 40:
        raise BadInterval(f"'{text}' is not a number of {unit.lower()}s")
    if match[3] and unit != "SECOND":
        raise BadInterval(f"only seconds can have a fraction, not {unit.lower()}s as in '{text}'")
    if len(match[4] or "") > _FRACTION_DIGITS:
        raise BadInterval(f"seconds have at most {_FRACTION_DIGITS} digits after the point, unlike '{text}'")
    value = int(match[2] or "0") * size
    if match[4]:
        value += _fraction_micros(match[4])
    return -value if match[1] == "-" else value


def _literal_in_range(amount: int, start: str, end: str, pos: int) -> IntervalLiteral:
    bits = 31 if start in MONTH_UNITS else 63
    if not -(1 << bits) <= amount < 1 << bits:
        raise BadInterval("the interval is too long")
    return IntervalLiteral(amount, start, end, pos=pos)


def interval_to_sql(literal: IntervalLiteral) -> str:
    """The literal as SQL that reads back to the same amount and the same type."""
    sign = "-" if literal.amount < 0 else ""
    size = abs(literal.amount)
    if literal.is_year_month:
        years, months = divmod(size, 12)
        if literal.start != literal.end:
            return f"INTERVAL '{sign}{years}-{months}' YEAR TO MONTH"
        return f"INTERVAL '{sign}{years if literal.end == 'YEAR' else size}' {literal.start}"
    fields = FIELDS[FIELDS.index(literal.start) : FIELDS.index(literal.end) + 1]
    text, separator = "", ""
    for field in fields:
        value, size = divmod(size, MICROSECOND_UNITS[field])
        text += f"{separator}{value}"
        separator = " " if field == "DAY" else ":"
    if literal.end == "SECOND":
        text += f".{size:06d}"
    unit = literal.start if len(fields) == 1 else f"{literal.start} TO {literal.end}"
    return f"INTERVAL '{sign}{text}' {unit}"
