"""Strings as timestamps by a pattern of digits, names and plain separators, as Java's strict formatter reads them."""

from __future__ import annotations

import functools
import itertools
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
from kquery_spark.functions.datetime.calendar_names import HALVES_OF_DAY, MONTHS, MONTHS_SHORT
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
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

# Fields with their widths; the ones of 0 take one digit or two, or one of several names.
_WIDTHS = {
    **dict.fromkeys(("yy", "MM", "dd", "HH", "hh", "mm", "ss", "a"), 2),
    **dict.fromkeys(("M", "d", "H", "h", "m", "s", "MMMM"), 0),
    "yyyy": 4,
    "MMM": 3,
}
_NAMES = {"MMM": MONTHS_SHORT, "MMMM": MONTHS, "a": HALVES_OF_DAY}
_FIRST_NAME = {"M": 1, "a": 0}
_PIECE = re.compile(r"'([^']+)'|([A-Za-z])\2*|([^A-Za-z'\[\]#{}]+)")
_DEFAULTS = {"y": 1970, "M": 1, "d": 1, "H": 0, "m": 0, "s": 0, "S": 0}
_MOST = {"M": 12, "d": 31, "H": 23, "m": 59, "s": 59}
_MAX_FRACTION_DIGITS = 9
_FIRST_SHORT_YEAR = 2000
_NAME_BYTES = 4  # of the integer that a short name is compared as
_FOLDED = frozenset("\u017f\u212a\u0131\u0130")  # which Java takes for s, k and i in any case
_LOWER = 0x20  # the bit that makes an ASCII letter lowercase

_Hour = TypeVar("_Hour", int, Int64s)


@functools.lru_cache(256)
def _pieces(pattern: str) -> tuple[tuple[str, str], ...]:
    """(field, "") or ("", literal text) one after the other; Unsupported for anything else."""
    pieces = _split(pattern)
    if pieces is None or not _is_unambiguous(pieces):
        raise Unsupported(f"the date format {pattern!r} is not supported")
    return tuple(pieces)


def _split(pattern: str) -> list[tuple[str, str]] | None:
    pieces: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        match = _PIECE.match(pattern, at)
        if match is None or not _is_known(match):
            return None
        pieces.append((match[0] if match[2] else "", match[1] or match[3] or ""))
        at = match.end()
    return pieces


def _is_unambiguous(pieces: Sequence[tuple[str, str]]) -> bool:
    """Whether there is a year, no field twice, an hour of either kind, and no digit that may be of two fields."""
    fields = [field[0] for field, _ in pieces if field]
    if len(set(fields)) < len(fields) or "y" not in fields:
        return False
    if ("h" in fields) != ("a" in fields) or {"h", "H"} <= set(fields):
        return False
    return not any(_share_digits(before, after) for (before, _), (after, _) in itertools.pairwise(pieces))


def _is_known(piece: re.Match[str]) -> bool:
    """Whether a piece of a pattern is a known field or a text, of ASCII characters and not too many of them."""
    text, is_field = piece[0], bool(piece[2])
    if is_field and text not in _WIDTHS and set(text) != {"S"}:
        return False
    return text.isascii() and len(text) <= _MAX_FRACTION_DIGITS


def _share_digits(before: str, after: str) -> bool:
    """Whether two neighbors are fields that share their digits by rules of their own."""
    if not (before and after) or before in _NAMES or after in _NAMES:
        return False
    return before[0] == "S" or after[0] in "yS" or not (_WIDTHS[before] and _WIDTHS[after])


@functools.lru_cache(256)
def _expression(pattern: str) -> re.Pattern[str]:
    """What the formatter takes, but years of other than four digits; letters are of any case."""
    parts = []
    for field, literal in _pieces(pattern):
        if not field:
            parts.append(re.escape(literal))
        elif field in _NAMES:
            parts.append(f"(?P<{field[0]}>{'|'.join(_NAMES[field])})")
        elif field[0] == "S":
            parts.append(f"(?P<S>[0-9]{{1,{len(field)}}})")
        else:
            width = _WIDTHS[field]
            parts.append(f"(?P<{field[0]}>[0-9]{f'{{{width}}}' if width else '{1,19}'})")
    return re.compile("".join(parts), re.IGNORECASE | re.ASCII)


@functools.lru_cache(256)
def _odd_year(pattern: str) -> re.Pattern[str] | None:
    """Strings whose year has a sign, which the formatter may take; None where it takes two digits only."""
    before = []
    for field, literal in _pieces(pattern):
        if field == "yy":
            return None
        if field == "yyyy":
            break
        before.append("[A-Za-z]+" if field in _NAMES else "[0-9]+" if field else re.escape(literal))
    return re.compile("".join(before) + r"[+-][0-9]{4}", re.IGNORECASE | re.ASCII)


def _moment(text: str, pattern: str) -> int | None:
    """Wall-clock microseconds of a text, or None."""
    match = _expression(pattern).fullmatch(text)
    if match is None:
        odd_year = _odd_year(pattern)
        if odd_year is not None and odd_year.match(text) is not None:
            raise Unsupported(f"the year in {text!r} is not supported with a date format")
        if not _FOLDED.isdisjoint(text):
            raise Unsupported(f"the letters of {text!r} are not supported with a date format")
        return None
    groups: dict[str, Any] = {**_DEFAULTS, **match.groupdict()}
    fraction = int(str(groups.pop("S")).ljust(6, "0")[:6])
    values = {
        field[0]: _number(field, groups[field[0]])
        for field, _ in _pieces(pattern)
        if field and field[0] != "S"
    }
    fields = _resolved({**_DEFAULTS, **values})
    if fields is None or any(fields[k] > most for k, most in _MOST.items()):
        return None
    if fields["y"] == 0:
        raise Unsupported(f"the year in {text!r} is not supported with a date format")
    days = day_number(fields["y"], fields["M"], fields["d"])
    if days is None:
        return None
    return (
        days * DAY_MICROS + (fields["H"] * 3600 + fields["m"] * 60 + fields["s"]) * SECOND_MICROS + fraction
    )


def _number(field: str, text: str) -> int:
    """The value of a field of a text that the expression of the pattern matches."""
    if field in _NAMES:
        return _FIRST_NAME[field[0]] + [name.lower() for name in _NAMES[field]].index(text.lower())
    return int(text) + (_FIRST_SHORT_YEAR if field == "yy" else 0)


def _resolved(values: Mapping[str, int]) -> dict[str, int] | None:
    """Values with the hour of the day of an hour of its half; None where there is no such hour."""
    if "h" not in values:
        return dict(values)
    if not 1 <= values["h"] <= 12:
        return None
    return {**values, "H": _hour_of_day(values["h"], values["a"])}


def _hour_of_day(hour: _Hour, half: _Hour) -> _Hour:
    """The hour from 0 of one from 1 to 12 of the first (0) or second half of a day."""
    return hour % 12 + 12 * half


def check_pattern(pattern: str) -> None:
    """Raise Unsupported for a pattern that the engine does not read strings by."""
    _pieces(pattern)


def wall_clock(strings: pa.Array, pattern: str) -> tuple[Int64s, Any]:
    """Wall-clock microseconds and the mask of NULLs, to which malformed strings belong."""
    return _wall(strings, pattern, CallContext(t.LONG, EvalMode.LEGACY, "UTC", len(strings)))


def _wall(strings: pa.Array, pattern: str, context: CallContext) -> tuple[Int64s, Any]:
    """Wall-clock microseconds and the mask of NULLs; what is malformed raises in ANSI mode."""

    def one(text: str) -> int | None:
        micros = _moment(text, pattern)
        if micros is None and context.mode is EvalMode.ANSI:
            raise ExecutionError("CANNOT_PARSE_TIMESTAMP", f"Text '{text}' could not be parsed.")
        return micros

    quick = _quick(strings, pattern)
    if quick is not None:
        return quick
    inner = CallContext(t.LONG, context.mode, context.tz, len(strings))
    return zones.ints(per_distinct(one, [Vector(t.STRING, strings)], inner))


def _quick(strings: pa.Array, pattern: str) -> tuple[Int64s, Any] | None:
    """All rows at once, where each has the pattern's width, digits and literals and no doubtful day or time."""
    width = _fixed_width(pattern)
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
    micros = None if values is None else _joined(values)
    if micros is None or mask is None:
        return None if micros is None else (micros, None)
    spread = np.zeros(len(mask), np.int64)
    spread[~mask] = micros
    return spread, mask


def _fixed_width(pattern: str) -> int | None:
    """The bytes of each text that a pattern describes, or None where they are of different lengths."""
    widths = [_WIDTHS.get(field, 0) if field else len(literal) for field, literal in _pieces(pattern)]
    return sum(widths) if all(widths) else None


def _field_values(raw: npt.NDArray[np.uint8], pattern: str) -> dict[str, Int64s] | None:
    """The values of all fields of strings, one a row; None where a text has something else than the pattern."""
    values = {k: np.full(len(raw), v) for k, v in _DEFAULTS.items()}
    at = 0
    for field, literal in _pieces(pattern):
        size = _WIDTHS[field] if field else len(literal)
        cells = raw[:, at : at + size]
        if field:
            numbers = _named(cells, field) if field in _NAMES else _digits(cells)
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
    """Numbers of ASCII digits, or None where there are others."""
    digits = cells.astype(np.int64) - ord("0")
    if ((digits < 0) | (digits > 9)).any():
        return None
    return np.asarray(digits @ (10 ** np.arange(cells.shape[1] - 1, -1, -1)))


def _named(cells: npt.NDArray[np.uint8], field: str) -> Int64s | None:
    """Numbers of short names of any case, or None where there are others."""
    size = cells.shape[1]
    names = np.frombuffer("".join(_NAMES[field]).encode(), np.uint8).reshape(-1, size)
    if (cells < ord("A")).any():
        return None
    known, given = _as_integers(names), _as_integers(cells)
    order = np.argsort(known)
    found = order[np.minimum(np.searchsorted(known, given, sorter=order), len(known) - 1)]
    return found + _FIRST_NAME[field[0]] if (known[found] == given).all() else None


def _as_integers(letters: npt.NDArray[np.uint8]) -> Int64s:
    """A number for each row of a few letters, whatever their case."""
    padded = np.zeros((len(letters), _NAME_BYTES), np.uint8)
    padded[:, : letters.shape[1]] = letters | _LOWER
    return np.ascontiguousarray(padded).view(np.uint32).ravel().astype(np.int64)


def _joined(values: dict[str, Int64s]) -> Int64s | None:
    """Wall-clock microseconds, or None where one of the days or times is doubtful."""
    y, month, day, hour, minute, second = (values[k] for k in "yMdHms")
    good = (
        (y > 0) & (hour < 24) & (minute < 60) & (second < 60) & civil.is_valid(np.maximum(y, 1), month, day)
    )
    if not good.all():
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
    wall, mask = _wall(args[0].array(context.num_rows), pattern, context)
    return packed(zones.to_instants(wall, context.tz), context.dtype, mask)


def _unix_timestamp(args: Sequence[Vector], context: CallContext) -> Data:
    """Seconds since 1970 of a text by its pattern, or of a date or timestamp, whatever the pattern."""
    pattern = _pattern(args)
    n = context.num_rows
    if pattern is None and args[0].dtype == t.STRING:
        return pa.nulls(n, t.LONG)
    if args[0].dtype == t.STRING:
        assert pattern is not None
        wall, mask = _wall(args[0].array(n), pattern, context)
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


def _check(values: Sequence[object]) -> None:
    if len(values) < 2:
        return
    if values[1] is COLUMN:
        raise Unsupported("the date format must be a literal")
    if isinstance(values[1], str):
        _pieces(values[1])


def _readable(dtype: pa.DataType) -> bool:
    return bool(dtype in (t.STRING, t.DATE) or t.is_timestamp(dtype))


def _coerce_readable(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [types[0] if _readable(types[0]) else t.STRING, *[t.STRING] * (len(types) - 1)]


_ANSI = frozenset({EvalMode.ANSI})

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
        raises=_ANSI,
        check_values=_check,
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
register(
    Function(
        "unix_timestamp",
        _unix_timestamp,
        accept(t.LONG, _readable, t.STRING),
        catalyst=("UnixTimestamp", "ToUnixTimestamp"),
        parameters=CatalystParameters(ignored=("suggestedFuncOnFail",)),
        arity=(1, 2),
        raises=_ANSI,
        check_values=_check,
        coerce=_coerce_readable,
        aliases=("to_unix_timestamp",),
        calls=CallForm(adds=(1, _DEFAULT_PATTERN)),
        alias_calls=(("to_unix_timestamp", CallForm(columns=(0, 1), adds=(1, _DEFAULT_PATTERN))),),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
