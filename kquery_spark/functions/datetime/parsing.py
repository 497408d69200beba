"""Parses timestamps by a pattern of digits, names and separators, as Java's strict formatter does.

A pattern such as ``yyyy-MM-dd HH:mm`` is split into fields and literals. There are two parsers with the same results:

- If all fields have a fixed width, and all strings have the width of the pattern, ``_parse_fixed_width`` parses all rows at
  once, as columns of bytes. It gives up as soon as one row has an unexpected byte or an invalid date.
- Otherwise ``_parse_string`` matches each distinct string with a regular expression.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.casts.temporal import day_number, packed
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.datetime.patterns import (
    FIELD_NAMES,
    FIELD_WIDTHS,
    check_pattern,
    fields_and_literals,
    fixed_width,
)
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ANSI_RAISES,
    COLUMN,
    CallContext,
    CatalystParameters,
    EvalMode,
    Function,
    accept,
    register,
    register_internal,
)
from kquery_spark.kernels import civil, zones
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS, SECOND_MICROS
from kquery_spark.types.vector import Data, Int64s, Vector

_FIRST_NAME = {"M": 1, "a": 0}
_DEFAULTS = {"y": 1970, "M": 1, "d": 1, "H": 0, "m": 0, "s": 0, "S": 0}
_MAX_VALUES = {"M": 12, "d": 31, "H": 23, "m": 59, "s": 59}
_FIRST_SHORT_YEAR = 2000
_NAME_BYTES = 4  # short names are compared as integers of this size
_FOLDED_LETTERS = frozenset("\u017f\u212a\u0131\u0130")  # equal to s, k and i when Java ignores case
_LOWER = 0x20  # the bit that makes an ASCII letter lowercase

_Hour = TypeVar("_Hour", int, Int64s)


@functools.lru_cache(256)
def _expression(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for the strings that Java's formatter accepts, except for years with a sign."""
    parts = []
    for field, literal in fields_and_literals(pattern):
        if not field:
            parts.append(re.escape(literal))
        elif field in FIELD_NAMES:
            parts.append(f"(?P<{field[0]}>{'|'.join(FIELD_NAMES[field])})")
        elif field[0] == "S":
            parts.append(f"(?P<S>[0-9]{{1,{len(field)}}})")
        else:
            width = FIELD_WIDTHS[field]
            parts.append(f"(?P<{field[0]}>[0-9]{f'{{{width}}}' if width else '{1,19}'})")
    return re.compile("".join(parts), re.IGNORECASE | re.ASCII)


@functools.lru_cache(256)
def _signed_year_expression(pattern: str) -> re.Pattern[str] | None:
    """Return a regular expression for strings whose year has a sign, which Java may accept; None for two-digit years."""
    before = []
    for field, literal in fields_and_literals(pattern):
        if field == "yy":
            return None
        if field == "yyyy":
            break
        before.append("[A-Za-z]+" if field in FIELD_NAMES else "[0-9]+" if field else re.escape(literal))
    return re.compile("".join(before) + r"[+-][0-9]{4}", re.IGNORECASE | re.ASCII)


def _parse_string(text: str, pattern: str) -> int | None:
    """Parse one string to wall-clock microseconds; None if it is malformed."""
    match = _expression(pattern).fullmatch(text)
    if match is None:
        odd_year = _signed_year_expression(pattern)
        if odd_year is not None and odd_year.match(text) is not None:
            raise Unsupported(f"the year in {text!r} is not supported with a date format")
        if not _FOLDED_LETTERS.isdisjoint(text):
            raise Unsupported(f"the letters of {text!r} are not supported with a date format")
        return None
    groups: dict[str, Any] = {**_DEFAULTS, **match.groupdict()}
    fraction = int(str(groups.pop("S")).ljust(6, "0")[:6])
    values = {
        field[0]: _field_value(field, groups[field[0]])
        for field, _ in fields_and_literals(pattern)
        if field and field[0] != "S"
    }
    fields = _with_hour_of_day({**_DEFAULTS, **values})
    if fields is None or any(fields[k] > most for k, most in _MAX_VALUES.items()):
        return None
    if fields["y"] == 0:
        raise Unsupported(f"the year in {text!r} is not supported with a date format")
    days = day_number(fields["y"], fields["M"], fields["d"])
    if days is None:
        return None
    return (
        days * DAY_MICROS + (fields["H"] * 3600 + fields["m"] * 60 + fields["s"]) * SECOND_MICROS + fraction
    )


def _field_value(field: str, text: str) -> int:
    """Return the value of a field, given its characters."""
    if field in FIELD_NAMES:
        return _FIRST_NAME[field[0]] + [name.lower() for name in FIELD_NAMES[field]].index(text.lower())
    return int(text) + (_FIRST_SHORT_YEAR if field == "yy" else 0)


def _with_hour_of_day(values: Mapping[str, int]) -> dict[str, int] | None:
    """Convert an hour from 1 to 12 and AM or PM to the hour of the day; None if the hour is out of range."""
    if "h" not in values:
        return dict(values)
    if not 1 <= values["h"] <= 12:
        return None
    return {**values, "H": _hour_of_day(values["h"], values["a"])}


def _hour_of_day(hour: _Hour, half: _Hour) -> _Hour:
    """Return the hour of the day (0 to 23) of an hour from 1 to 12 in the first (0) or second (1) half of the day."""
    return hour % 12 + 12 * half


def wall_clock(strings: pa.Array, pattern: str) -> tuple[Int64s, Any]:
    """Parse strings to wall-clock microseconds; return them with the mask of NULLs, which includes malformed strings."""
    return _parse_strings(strings, pattern, CallContext(t.LONG, EvalMode.LEGACY, "UTC", len(strings)))


def _parse_strings(strings: pa.Array, pattern: str, context: CallContext) -> tuple[Int64s, Any]:
    """Parse strings to wall-clock microseconds; return them with the mask of NULLs. Malformed strings raise in ANSI mode."""

    def evaluate(text: str) -> int | None:
        micros = _parse_string(text, pattern)
        if micros is None and context.mode is EvalMode.ANSI:
            raise ExecutionError("CANNOT_PARSE_TIMESTAMP", f"Text '{text}' could not be parsed.")
        return micros

    parsed = _parse_fixed_width(strings, pattern)
    if parsed is not None:
        return parsed
    inner = CallContext(t.LONG, context.mode, context.tz, len(strings))
    return zones.ints(per_distinct(evaluate, [Vector(t.STRING, strings)], inner))


def _parse_fixed_width(strings: pa.Array, pattern: str) -> tuple[Int64s, Any] | None:
    """Parse all rows at once; None unless each one has the width of the pattern and is certainly valid."""
    width = fixed_width(pattern)
    if width is None or not len(strings):
        return None
    sizes = pc.min_max(pc.binary_length(strings)).as_py()
    if sizes["min"] != width or sizes["max"] != width:
        return None
    mask = None
    if strings.null_count:
        mask = np.asarray(strings.is_null().to_numpy(zero_copy_only=False))
        strings = strings.drop_null()
    bounds = np.frombuffer(strings.buffers()[1], np.int32, len(strings) + 1, 4 * strings.offset)
    raw = np.frombuffer(strings.buffers()[2], np.uint8)[bounds[0] : bounds[-1]].reshape(len(strings), width)
    values = _field_values(raw, pattern)
    micros = None if values is None else _to_micros(values)
    if micros is None or mask is None:
        return None if micros is None else (micros, None)
    spread = np.zeros(len(mask), np.int64)
    spread[~mask] = micros
    return spread, mask


def _field_values(raw: npt.NDArray[np.uint8], pattern: str) -> dict[str, Int64s] | None:
    """Return the values of all fields, one per row; None if a row does not match the pattern."""
    values = {k: np.full(len(raw), v) for k, v in _DEFAULTS.items()}
    at = 0
    for field, literal in fields_and_literals(pattern):
        size = FIELD_WIDTHS[field] if field else len(literal)
        cells = raw[:, at : at + size]
        if field:
            numbers = _name_numbers(cells, field) if field in FIELD_NAMES else _digits(cells)
            if numbers is None:
                return None
            values[field[0]] = numbers + (_FIRST_SHORT_YEAR if field == "yy" else 0)
        elif not (cells == np.frombuffer(literal.encode(), np.uint8)).all():
            return None
        at += size
    if "h" in values:
        hour = values["h"]
        if ((hour < 1) | (hour > 12)).any():
            return None
        values["H"] = _hour_of_day(hour, values["a"])
    return values


def _digits(cells: npt.NDArray[np.uint8]) -> Int64s | None:
    """Return the numbers that rows of ASCII digits spell; None if there are other bytes."""
    digits = cells.astype(np.int64) - ord("0")
    if ((digits < 0) | (digits > 9)).any():
        return None
    return np.asarray(digits @ (10 ** np.arange(cells.shape[1] - 1, -1, -1)))


def _name_numbers(cells: npt.NDArray[np.uint8], field: str) -> Int64s | None:
    """Return the numbers of short names (month or AM/PM) in any case; None if there are other strings."""
    size = cells.shape[1]
    names = np.frombuffer("".join(FIELD_NAMES[field]).encode(), np.uint8).reshape(-1, size)
    if (cells < ord("A")).any():
        return None
    known, actual = _as_integers(names), _as_integers(cells)
    order = np.argsort(known)
    positions = order[np.minimum(np.searchsorted(known, actual, sorter=order), len(known) - 1)]
    return positions + _FIRST_NAME[field[0]] if (known[positions] == actual).all() else None


def _as_integers(letters: npt.NDArray[np.uint8]) -> Int64s:
    """Return one integer per row of up to four letters, which does not depend on their case."""
    padded = np.zeros((len(letters), _NAME_BYTES), np.uint8)
    padded[:, : letters.shape[1]] = letters | _LOWER
    return np.ascontiguousarray(padded).view(np.uint32).ravel().astype(np.int64)


def _to_micros(values: dict[str, Int64s]) -> Int64s | None:
    """Combine field values to wall-clock microseconds; None if a row is not a valid date and time."""
    y, month, day, hour, minute, second = (values[k] for k in "yMdHms")
    is_valid = (
        (y > 0) & (hour < 24) & (minute < 60) & (second < 60) & civil.is_valid(np.maximum(y, 1), month, day)
    )
    if not is_valid.all():
        return None
    micros: Int64s = (
        civil.days_of_dates(y, month, day) * DAY_MICROS + (hour * 3600 + minute * 60 + second) * SECOND_MICROS
    )
    return micros


def _pattern(args: Sequence[Vector]) -> str | None:
    pattern: str | None = args[1].data.as_py() if len(args) > 1 else "yyyy-MM-dd HH:mm:ss"
    return pattern


def _get_timestamp(args: Sequence[Vector], context: CallContext) -> Data:
    pattern = _pattern(args)
    if pattern is None:
        return pa.nulls(context.num_rows, context.dtype)
    wall, mask = _parse_strings(args[0].array(context.num_rows), pattern, context)
    return packed(zones.to_instants(wall, context.tz), context.dtype, mask)


def _unix_timestamp(args: Sequence[Vector], context: CallContext) -> Data:
    """Return seconds since 1970 of a string by a pattern, or of a date or timestamp, for which the pattern is ignored."""
    pattern = _pattern(args)
    n = context.num_rows
    if args[0].dtype == t.STRING:
        assert pattern is not None  # _check_format declines a NULL format
        wall, mask = _parse_strings(args[0].array(n), pattern, context)
        instants = zones.to_instants(wall, context.tz)
    else:
        values, mask = zones.ints(args[0].array(n))
        instants = (
            zones.to_instants(civil.timestamp_micros(values), context.tz)
            if args[0].dtype == t.DATE
            else values
        )
    # Spark divides as Java does, toward zero.
    return pa.array(np.sign(instants) * (np.abs(instants) // SECOND_MICROS), mask=mask)


def _check_pattern_argument(values: Sequence[object]) -> None:
    if len(values) < 2:
        return
    if values[1] is COLUMN:
        raise Unsupported("the date format must be a literal")
    if isinstance(values[1], str):
        check_pattern(values[1])


def _check_format(values: Sequence[object]) -> None:
    """Raise Unsupported for a NULL format: for a date, Spark ignores it, but the engine would return NULL."""
    if len(values) > 1 and values[1] is None:
        raise Unsupported("a NULL date format is not supported")
    _check_pattern_argument(values)


def _is_string_date_or_timestamp(dtype: pa.DataType) -> bool:
    return bool(dtype in (t.STRING, t.DATE) or t.is_timestamp(dtype))


def _coerce_argument_types(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [types[0] if _is_string_date_or_timestamp(types[0]) else t.STRING, *[t.STRING] * (len(types) - 1)]


_DEFAULT_PATTERN = ", yyyy-MM-dd HH:mm:ss"

register_internal(
    # GetTimestamp(text, format) under to_timestamp, to_date and their try_ forms; failOnError is the mode
    Function(
        "parse_timestamp",
        _get_timestamp,
        accept(t.timestamp("UTC"), t.STRING),
        catalyst=("GetTimestamp",),
        parameters=CatalystParameters(ignored=("suggestedFuncOnFail", "dataType")),
        arity=(2, 2),
        raises=ANSI_RAISES,
        check_values=_check_pattern_argument,
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
register(
    Function(
        "unix_timestamp",
        _unix_timestamp,
        accept(t.LONG, _is_string_date_or_timestamp, t.STRING),
        catalyst=("UnixTimestamp", "ToUnixTimestamp"),
        parameters=CatalystParameters(ignored=("suggestedFuncOnFail",)),
        arity=(1, 2),
        raises=ANSI_RAISES,
        check_values=_check_format,
        coerce=_coerce_argument_types,
        aliases=("to_unix_timestamp",),
        calls=CallForm(adds=(1, _DEFAULT_PATTERN)),
        alias_calls=(("to_unix_timestamp", CallForm(columns=(0, 1), adds=(1, _DEFAULT_PATTERN))),),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
