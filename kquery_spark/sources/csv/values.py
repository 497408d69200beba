"""Converts strings to values like Spark's CSV reader: the rules of Java's parsers, and NULL for malformed strings."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.functions.casts.temporal import parse_date, parse_timestamp
from kquery_spark.functions.datetime.parsing import wall_clock
from kquery_spark.kernels import civil, zones
from kquery_spark.kernels.text import if_else
from kquery_spark.sources.csv.options import CsvOptions
from kquery_spark.sources.text_format import EXCEPTION, TIME_PARSER
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS

Parse = Callable[[str], Any]


def check_type(name: str, dtype: pa.DataType) -> None:
    """Raise Unsupported for a column type that CSV files cannot have, neither here nor in Spark."""
    known = (t.STRING, t.BOOL, t.DATE, t.TIMESTAMP_NTZ)
    if not (dtype in known or t.is_numeric(dtype) or t.is_timestamp(dtype)):
        raise Unsupported(f"the CSV column {name} of type {t.spark_name(dtype)} is not supported")


def converted(column: pa.Array, dtype: pa.DataType, options: CsvOptions) -> pa.Array:
    """Convert strings to values of ``dtype``; NULL and malformed strings give NULL."""
    if column.type == dtype or dtype == t.STRING:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), dtype)
    pattern = options.pattern_of(dtype)
    if pattern:
        return _parse_with_pattern(column, dtype, pattern, options)
    if t.is_timestamp(dtype) or dtype == t.TIMESTAMP_NTZ:
        return _checked_times(_timestamps(column, dtype, options), column, options)
    if dtype == t.DATE:
        days = quick_cast(column, dtype)
        return _checked_times(
            _cast_or_parse(column, dtype, options) if days is None else days, column, options
        )
    if dtype == t.BOOL:
        return _booleans(column)
    values = quick_cast(column, dtype)
    if values is None:
        values = _cast_or_parse(column, dtype, options)
    if t.is_fractional(dtype) and options.special_numbers_look_finite:
        return _with_words(values, column, options)
    return values


def _checked_times(values: pa.Array, strings: pa.Array, options: CsvOptions) -> pa.Array:
    """Return ``values``; raises SourceError if Spark may raise an error for a malformed one of the strings.

    While ``spark.sql.legacy.timeParserPolicy`` is EXCEPTION, Spark raises an error for a malformed string that the parser
    of Spark 2 accepts, like 2020-02-30. Spark 2 had no TIMESTAMP_NTZ, so strings of this type never raise this error.
    """
    if (
        options.declines_malformed_times
        and values.type != t.TIMESTAMP_NTZ
        and values.null_count > strings.null_count
    ):
        malformed = strings.filter(pc.and_(values.is_null(), strings.is_valid()))[0].as_py()
        raise SourceError(
            f"the malformed date or timestamp {malformed!r} is not supported "
            f"while {TIME_PARSER} is {EXCEPTION}"
        )
    return values


def _with_words(values: pa.Array, strings: pa.Array, options: CsvOptions) -> pa.Array:
    """Replace the values of strings for which the options define a number (``nanValue``, ``positiveInf``, ...)."""
    for word, value in options.words.items():
        values = pc.if_else(pc.equal(strings, word), pa.scalar(value, values.type), values)
    return values


def _cast_or_parse(column: pa.Array, dtype: pa.DataType, options: CsvOptions) -> pa.Array:
    """Cast strings in a regular form with Arrow, and parse each of the others with Java's rules."""
    regular, slow = _rules(dtype, options)
    matches = pc.fill_null(pc.match_substring_regex(column, regular), True)
    values = if_else(matches, column, pa.scalar(None, t.STRING)).cast(dtype)
    odd = pc.invert(matches)
    return pc.replace_with_mask(values, odd, _parse_distinct(column.filter(odd), slow, dtype))


def quick_cast(column: pa.Array, dtype: pa.DataType) -> pa.Array | None:
    """Cast with Arrow if it reads every value like Java does; otherwise return None."""
    data = column.buffers()[2]
    if t.is_integral(dtype) and data is not None:
        view = memoryview(data)
        if _has(view, b"x") or _has(view, b"X"):
            return None  # Arrow reads hexadecimal, Java does not
    if t.is_decimal(dtype):
        return None
    if dtype == t.TIMESTAMP_NTZ:
        return _regular_timestamps(column)
    values = _cast(column, dtype)
    if values is not None and t.is_fractional(dtype) and pc.all(pc.is_finite(values)).as_py() is False:
        return None
    return values


def _cast(column: pa.Array, dtype: pa.DataType) -> pa.Array | None:
    try:
        return column.cast(dtype)
    except pa.ArrowInvalid:
        return None


def _has(view: memoryview, byte: bytes) -> bool:
    return (
        byte in view.tobytes()
        if len(view) < 1 << 16
        else bool((np.frombuffer(view, np.uint8) == byte[0]).any())
    )


def _parse_distinct(strings: pa.Array, parse: Parse, dtype: pa.DataType) -> pa.Array:
    """Parse every distinct string once."""
    if not len(strings):
        return pa.array([], dtype)
    encoded = strings.dictionary_encode()
    values = pa.array([parse(x) for x in encoded.dictionary.to_pylist()], dtype)
    return values.take(encoded.indices)


_DIGITS = {8: 2, 16: 4, 32: 9, 64: 18}


def _rules(dtype: pa.DataType, options: CsvOptions) -> tuple[str, Parse]:
    """Return the pattern of strings that Arrow casts like Java, and the parser for all other strings."""
    if t.is_integral(dtype):
        return rf"\A-?[0-9]{{1,{_DIGITS[dtype.bit_width]}}}\z", lambda s: _integer(s, dtype.bit_width)
    if t.is_fractional(dtype):
        return (
            r"\A-?[0-9]{1,15}(\.[0-9]{0,15})?([eE]-?[0-9])?\z",
            lambda s: parse_fractional(s, dtype, options),
        )
    if t.is_decimal(dtype):
        whole = dtype.precision - dtype.scale
        digits = rf"[0-9]{{1,{whole}}}" if whole else "0"
        fraction = rf"(\.[0-9]{{1,{dtype.scale}}})?" if dtype.scale else ""
        return rf"\A-?{digits}{fraction}\z", lambda s: parse_decimal(s, dtype)
    if dtype == t.DATE:
        return r"\A[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])\z", lambda s: _date(s, options)
    raise Unsupported(f"CSV columns of type {t.spark_name(dtype)} are not supported")


# A digit of any script. Java sees a character above U+FFFF as two surrogates, which are not digits.
_DIGIT = r"[^\D\U00010000-\U0010FFFF]"
_INTEGER = re.compile(rf"[+-]?{_DIGIT}+")
_MAX_INTEGER_DIGITS = 19


def _integer(text: str, bits: int) -> int | None:
    number = parse_whole_number(text)
    if number is None or number.adjusted() >= _MAX_INTEGER_DIGITS:
        return None
    value = int(number)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def parse_whole_number(text: str) -> decimal.Decimal | None:
    """Parse an integer of any length, while ``int`` accepts at most 4,300 digits; None for other strings."""
    return None if _INTEGER.fullmatch(text) is None else decimal.Decimal(text)


_DECIMAL_FLOAT = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX_FLOAT = re.compile(r"([+-]?)(0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_NAMED_FLOATS = {
    "NaN": math.nan, "+NaN": math.nan, "-NaN": math.nan,
    "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf,
}  # fmt: skip
_JAVA_BLANKS = "".join(map(chr, range(33)))


def parse_fractional(text: str, dtype: pa.DataType, options: CsvOptions) -> Any:
    """Parse like Java's parseDouble and parseFloat, after the options' strings for NaN and the infinities."""
    if text in options.words:
        return options.words[text]
    body = text.strip(_JAVA_BLANKS)
    if body in _NAMED_FLOATS:
        return _NAMED_FLOATS[body]
    match = _DECIMAL_FLOAT.fullmatch(body)
    if match is not None:
        return float(match[1]) if dtype == t.DOUBLE else _parse_single(match[1])
    match = _HEX_FLOAT.fullmatch(body)
    if match is None:
        return None
    if dtype != t.DOUBLE:
        raise SourceError(f"the hexadecimal float {text!r} is not supported")
    return _parse_hexadecimal(*match.groups())


def _parse_single(text: str) -> float:
    """Parse a float32. Rounding to a double first would differ from Java in the last bit."""
    wide = float(text)
    if not np.isfinite(wide) or wide == 0:
        return wide
    with np.errstate(over="ignore"):
        return _nearest_float(decimal.Decimal(text))


def _parse_hexadecimal(sign: str, digits: str) -> float:
    try:
        return float.fromhex(sign + digits)
    except OverflowError:
        return -math.inf if sign == "-" else math.inf


def parses_as_double(text: str, options: CsvOptions) -> bool:
    """Return whether Spark's schema inference reads the string as a double."""
    return parse_fractional(text, t.DOUBLE, options) is not None


# Halfway between the largest float32 and 2^128, the next power of two: from here on, numbers are rounded to infinity.
_FLOAT_OVERFLOW = decimal.Decimal(2**128 - 2**103)
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def _nearest_float(value: decimal.Decimal) -> float:
    """Return the float32 that is nearest to a decimal; ties go to the even one."""
    if value.copy_abs() >= _FLOAT_OVERFLOW:
        return math.copysign(math.inf, value)
    # The double may be at or past the limit even if the decimal is not.
    guess = np.float32(min(max(float(value), -_LARGEST_FLOAT), _LARGEST_FLOAT))
    around = [guess, np.nextafter(guess, np.float32(-np.inf)), np.nextafter(guess, np.float32(np.inf))]
    with decimal.localcontext(decimal.Context(prec=200 + len(value.as_tuple().digits))):
        ranked = sorted(
            (x for x in around if np.isfinite(x)),
            key=lambda x: (abs(decimal.Decimal(float(x)) - value), int(x.view(np.uint32)) & 1),
        )
    return float(ranked[0])


_NUMBER = re.compile(rf"[+-]?(?:{_DIGIT}+\.?{_DIGIT}*|\.{_DIGIT}+)(?:[eE][+-]?[0-9]{{1,9}})?")


def is_number(text: str) -> bool:
    """Return whether ``new BigDecimal`` accepts the string."""
    return _NUMBER.fullmatch(text) is not None


def parse_decimal(text: str, dtype: pa.DataType) -> decimal.Decimal | None:
    """Parse like ``new BigDecimal`` after removing thousands separators, rounded half up; None if it does not fit."""
    body = text.replace(",", "")
    if not is_number(body):
        return None
    value = decimal.Decimal(body)
    if value and value.adjusted() > dtype.precision:
        return None
    with decimal.localcontext(decimal.Context(prec=max(100, len(body) + 80))):
        value = value.quantize(decimal.Decimal(1).scaleb(-dtype.scale), decimal.ROUND_HALF_UP)
    return value if len(value.as_tuple().digits) <= dtype.precision or not value else None


_ISO_DATE = re.compile(r"(-?\d{4}|[+-]\d{5,9})-(\d\d)-(\d\d)", re.ASCII)


def parse_iso_date(text: str) -> int | None:
    """Parse ``uuuu-MM-dd`` to days since 1970 like java.time in strict mode; None if it is not such a date."""
    match = _ISO_DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not civil.is_valid(np.array([year]), np.array([month]), np.array([day]))[0]:
        return None
    days = int(civil.days_of_dates(np.array([year]), np.array([month]), np.array([day]))[0])
    return days if -(2**31) <= days < 2**31 else None


def _date(text: str, options: CsvOptions) -> int | None:
    """Parse a date in the default format or, if the options set no format, in any form that CAST accepts."""
    value = parse_iso_date(text)
    if value is None and not options.strict_dates:
        value = parse_date(_without_gmt(text))
    return value


def _without_gmt(text: str) -> str:
    """Remove GMT everywhere, like Spark's ``cleanLegacyTimestampStr``: 2019-01-01GMT is the date 2019-01-01."""
    return text.replace("GMT", "")


def _booleans(column: pa.Array) -> pa.Array:
    lower = pc.ascii_lower(column)
    return pc.if_else(pc.is_in(lower, pa.array(["true", "false"])), pc.equal(lower, "true"), None)


def _parse_with_pattern(column: pa.Array, dtype: pa.DataType, pattern: str, options: CsvOptions) -> pa.Array:
    """Parse dates or timestamps with a pattern of the options."""
    try:
        wall, mask = wall_clock(column, pattern)
    except Unsupported as error:
        raise SourceError(f"a string is not supported with the pattern {pattern!r}: {error.reason}") from None
    if dtype == t.DATE:
        return pa.array(wall // DAY_MICROS, mask=mask).cast(pa.int32()).cast(t.DATE)
    micros = zones.to_instants(wall, options.time_zone or dtype.tz) if dtype.tz else wall
    return pa.array(micros, mask=mask).view(dtype)


_ZONE = re.compile(r".*\d:\d{1,2}:\d{1,2}(?:\.\d*)?[^0-9.].*", re.DOTALL)


def _timestamps(column: pa.Array, dtype: pa.DataType, options: CsvOptions) -> pa.Array:
    zone = (options.time_zone or dtype.tz) if dtype.tz else None
    local = _regular_timestamps(column)
    if local is not None:
        if zone is None or zones.fixed_offset(zone) == 0:
            return local.cast(t.TIMESTAMP_NTZ).view(dtype)
        micros, mask = zones.ints(local.cast(t.TIMESTAMP_NTZ))
        return pa.array(zones.to_instants(micros, zone), mask=mask).view(dtype)

    def parse(text: str) -> int | None:
        if zone is None:
            stripped = text.strip(_JAVA_BLANKS)
            return None if _ZONE.fullmatch(stripped) else parse_timestamp(text, None)
        value = parse_timestamp(text, zone)
        return parse_timestamp(_without_gmt(text), zone) if value is None and "GMT" in text else value

    def guarded(text: str) -> int | None:
        try:
            return parse(text)
        except Unsupported as error:
            raise SourceError(f"the timestamp {text!r} is not supported: {error.reason}") from None

    regular = (
        r"\A[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\z"
    )
    matches = pc.fill_null(pc.match_substring_regex(column, regular), True)
    odd = pc.invert(matches)
    known = if_else(matches, column, pa.scalar(None, t.STRING))
    values = pa.nulls(len(column), dtype)
    # This recursion ends at once: all strings in ``known`` have the form that ``_regular_timestamps`` parses.
    if known.null_count < len(known):
        values = _timestamps(known, dtype, options)
    parsed = _parse_distinct(column.filter(odd), guarded, pa.int64())
    return pc.replace_with_mask(values, odd, parsed.view(dtype))


_SECONDS_WIDTH = len("2019-01-31 23:59:59")
_SEPARATORS = ((4, b"-"), (7, b"-"), (10, b" T"), (13, b":"), (16, b":"))


def _regular_timestamps(column: pa.Array) -> pa.Array | None:
    """Parse wall-clock times if all strings look like ``2019-01-31 23:59:59``, with up to six decimals; else None."""
    lengths = pc.binary_length(column)
    low, high = (x.as_py() for x in pc.min_max(lengths).values())
    if low is None or not (low == high == _SECONDS_WIDTH or _SECONDS_WIDTH + 2 <= low <= high <= 26):
        return None
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column), 4 * column.offset)
    if column.null_count:
        offsets = offsets[np.asarray(column.is_valid().to_numpy(zero_copy_only=False))]
    raw = np.frombuffer(column.buffers()[2], np.uint8)
    separators = _SEPARATORS if low == _SECONDS_WIDTH else (*_SEPARATORS, (_SECONDS_WIDTH, b"."))
    if not all(_are_one_of(raw[offsets + position], allowed) for position, allowed in separators):
        return None
    last = raw[offsets + np.asarray(lengths.drop_null()) - 1]
    if ((last < 48) | (last > 57)).any():
        return None  # a zone
    return _cast(column, pa.timestamp("us"))


def _are_one_of(cells: npt.NDArray[np.uint8], allowed: bytes) -> bool:
    good = cells == allowed[0]
    for other in allowed[1:]:
        good |= cells == other
    return bool(good.all())
