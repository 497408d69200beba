"""DATE_FORMAT and FROM_UNIXTIME for patterns of digit fields, names and literals, with Java's English output."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.core.arguments import joint_mask, numbers
from kquery_spark.functions.datetime.calendar_names import (
    DAYS,
    DAYS_SHORT,
    HALVES_OF_DAY,
    MONTHS,
    MONTHS_SHORT,
)
from kquery_spark.functions.datetime.date_fields import coerce_stamp, is_stamp, local
from kquery_spark.functions.datetime.patterns import split_pattern
from kquery_spark.functions.registry import (
    COLUMN,
    CallContext,
    Function,
    Nullability,
    accept,
    cast_to,
    register,
)
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

# The largest value of each field of digits; the smallest is 0 or 1.
_MOST = {"y": 9999, "Q": 4, "M": 12, "d": 31, "D": 366, "H": 23, "h": 12, "K": 11, "k": 24, "m": 59, "s": 59}
_NAMES: dict[str, Sequence[str]] = {
    "MMM": MONTHS_SHORT,
    "MMMM": MONTHS,
    **dict.fromkeys(("E", "EE", "EEE"), DAYS_SHORT),
    "EEEE": DAYS,
    "QQQ": ("Q1", "Q2", "Q3", "Q4"),
    "QQQQ": ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter"),
    "a": HALVES_OF_DAY,
}
_MAX_FRACTION_DIGITS = 9


def _is_known(piece: re.Match[str]) -> bool:
    field, letter = piece[0], piece[2]
    if letter is None:
        return field.isascii()
    if letter == "S":
        return len(field) <= _MAX_FRACTION_DIGITS
    return field in _NAMES or (letter in _MOST and len(field) <= max(2, len(str(_MOST[letter]))))


class _Moments:
    """Wall-clock times, split into fields, which are identified by their pattern letters."""

    def __init__(self, wall: Int64s, mask: Any) -> None:
        self._days, self._micros = wall // DAY_MICROS, wall % DAY_MICROS
        self._year, self._month, self._day = civil.split(self._days)
        if mask is not None:
            self._year = np.where(mask, 1970, self._year)
        if ((self._year < 1) | (self._year > 9999)).any():
            raise Unsupported("dates outside the years 1 to 9999 are not formatted by the engine")

    def names(self, letter: str) -> Int64s:
        """Return the index of each time's name among the names of a field."""
        if letter == "E":
            return civil.weekday(self._days)
        return self._hour // 12 if letter == "a" else self.numbers(letter) - 1

    def numbers(self, letter: str) -> Int64s:
        """The values of a numeric field."""
        numbers: dict[str, Callable[[], Int64s]] = {
            "y": lambda: self._year,
            "Q": lambda: (self._month + 2) // 3,
            "M": lambda: self._month,
            "d": lambda: self._day,
            "D": lambda: self._days - civil.first_day((self._year - 1970) * 12) + 1,
            "H": lambda: self._hour,
            "h": lambda: (self._hour + 11) % 12 + 1,
            "K": lambda: self._hour % 12,
            "k": lambda: (self._hour + 23) % 24 + 1,
            "m": lambda: self._micros // (60 * SECOND_MICROS) % 60,
            "s": lambda: self._micros // SECOND_MICROS % 60,
        }
        return numbers[letter]()

    def fraction(self, digits: int) -> Int64s:
        """The first digits of the fraction of a second, as a number."""
        nanos = self._micros % SECOND_MICROS * 1000
        return np.asarray(nanos // 10 ** (_MAX_FRACTION_DIGITS - digits))

    @property
    def _hour(self) -> Int64s:
        return np.asarray(self._micros // (3600 * SECOND_MICROS))


def _render(wall: Int64s, pattern: str, mask: Any) -> pa.Array:
    """Format all rows: fields of a fixed width are written as columns of bytes, the others are joined as strings."""
    moments = _Moments(wall, mask)
    columns = [
        _column(field, moments, mask) if field else literal.encode()
        for field, literal in split_pattern(pattern, _is_known)
    ]
    strings: list[pa.Array] = []
    for are_strings, neighbors in itertools.groupby(columns, lambda column: isinstance(column, pa.Array)):
        some = list(neighbors)
        strings += some if are_strings else [civil.fixed_width_strings(some, len(wall), mask)]
    return strings[0] if len(strings) == 1 else pc.binary_join_element_wise(*strings, "")


def _column(field: str, moments: _Moments, mask: Any) -> npt.NDArray[np.uint8] | pa.Array:
    """A field of each row: a block of digits if its width is fixed, otherwise strings."""
    letter, width = field[0], len(field)
    if letter == "S":
        return civil.digits(moments.fraction(width), width)
    if field in _NAMES:
        return pa.array(_NAMES[field], t.STRING).take(pa.array(moments.names(letter), mask=mask))
    numbers = moments.numbers(letter)
    if field == "yy":
        return civil.digits(numbers % 100, 2)
    if width == len(str(_MOST[letter])):
        return civil.digits(numbers, width)
    strings = pa.array([f"{number:0{width}}" for number in range(_MOST[letter] + 1)], t.STRING)
    return strings.take(pa.array(numbers, mask=mask))


def _date_format(args: Sequence[Vector], context: CallContext) -> Data:
    if not args[1].data.is_valid:
        return pa.nulls(context.num_rows, t.STRING)
    wall, mask = local(args[0], context)
    return _render(wall, args[1].data.as_py(), mask)


def _from_unixtime(args: Sequence[Vector], context: CallContext) -> Data:
    pattern = args[1].data.as_py() if len(args) > 1 else "yyyy-MM-dd HH:mm:ss"
    if pattern is None:
        return pa.nulls(context.num_rows, t.STRING)
    instants = numbers(args[0], context.num_rows) * 1_000_000
    return _render(zones.to_local(instants, context.tz), pattern, joint_mask(args[:1], context.num_rows))


def _check(values: Sequence[object]) -> None:
    if len(values) < 2:
        return
    if values[1] is COLUMN:
        raise Unsupported("the date format must be a literal")
    if isinstance(values[1], str) and not values[1]:
        raise Unsupported("an empty date format is not supported")
    if isinstance(values[1], str):
        split_pattern(values[1], _is_known)


register(
    # children (timestamp, format literal); a date arrives below a cast; timeZoneId is the Call's tz
    Function(
        "date_format",
        _date_format,
        accept(t.STRING, is_stamp, t.STRING),
        catalyst=("DateFormatClass",),
        arity=(2, 2),
        coerce=lambda types: [*coerce_stamp(types[:1]), t.STRING],
        check_values=_check,
    ),
    # children (bigint seconds, format literal); timeZoneId is the Call's tz
    Function(
        "from_unixtime",
        _from_unixtime,
        accept(t.STRING, t.LONG, t.STRING),
        catalyst=("FromUnixTime",),
        calls=CallForm(adds=(1, ", yyyy-MM-dd HH:mm:ss")),
        arity=(1, 2),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        coerce=cast_to(t.LONG, t.STRING),
        check_values=_check,
    ),
)
