"""Casts from and to strings, except for dates and times, with the rules of Java's parsers and ``toString``."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.casts.floats import text_array
from kquery_spark.functions.casts.table import cast_rule
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import CallContext, EvalMode
from kquery_spark.kernels.text import if_else
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

WHITESPACE = "".join(map(chr, range(33))) + "\x7f"  # what UTF8String.trimAll removes
_JAVA_TRIM = "".join(map(chr, range(33)))  # what String.trim removes


def invalid_input(value: str, source: pa.DataType, target: pa.DataType) -> ExecutionError:
    """Spark's error for a string that is not a value of the target type."""
    shown = f"'{value}'" if source == t.STRING else str(value)
    return ExecutionError(
        "CAST_INVALID_INPUT",
        f'The value {shown} of the type "{t.spark_name(source).upper()}" cannot be cast to '
        f'"{t.spark_name(target).upper()}" because it is malformed. Correct the value as per the syntax, or change its '
        "target type. Use `try_cast` to tolerate malformed input and return NULL instead.",
    )


def parse(
    vector: Vector,
    context: CallContext,
    regular: str,
    fast: Callable[[pa.Array], pa.Array],
    slow: Callable[[str], Any],
    physical: pa.DataType | None = None,
) -> pa.Array:
    """Parse strings: ``fast`` parses all that match the ``regular`` pattern at once, ``slow`` each other distinct string.

    ``slow`` returns None for a malformed string, which raises an error (ANSI) or becomes NULL.
    """
    data = vector.data
    dtype = physical or context.dtype
    if data.null_count == len(data):
        return pa.nulls(len(data), dtype)
    matches = pc.match_substring_regex(data, regular)
    if pc.all(matches).as_py():
        return fast(data)

    def evaluate(value: str) -> Any:
        converted = slow(value)
        if converted is None and context.mode is EvalMode.ANSI:
            raise invalid_input(value, vector.dtype, context.dtype)
        return converted

    odd = pc.fill_null(pc.invert(matches), False)
    rest = data.filter(odd)
    inner = CallContext(context.dtype, context.mode, context.tz, len(rest))
    parsed = per_distinct(evaluate, [Vector(t.STRING, rest)], inner, dtype)
    if len(rest) == len(data):
        return parsed
    result = fast(if_else(odd, pa.scalar(None, t.STRING), data))
    if result.type != dtype:
        result = result.cast(dtype)
    return pc.replace_with_mask(result, odd, parsed)


_INTEGER = re.compile(r"[+-]?[0-9]+")
_INTEGER_LEGACY = re.compile(r"[+-]?(?=[0-9.])[0-9]*(?:\.[0-9]*)?")
_MAX_INT64_DIGITS = 19


@cast_rule("string", "integral")
def _string_int(vector: Vector, context: CallContext) -> Data:
    bits = context.dtype.bit_width
    pattern = _INTEGER_LEGACY if context.mode is EvalMode.LEGACY else _INTEGER
    limit = 2 ** (bits - 1)

    def slow(value: str) -> int | None:
        text = value.strip(WHITESPACE)
        if not pattern.fullmatch(text):
            return None
        digits = text.split(".")[0].lstrip("+-0")
        if len(digits) > _MAX_INT64_DIGITS:  # Python does not convert strings of thousands of digits
            return None
        number = int(digits or "0") * (-1 if text.startswith("-") else 1)
        return number if -limit <= number < limit else None

    safe_digits = {8: 2, 16: 4, 32: 9, 64: 18}[bits]
    return parse(vector, context, rf"\A-?[0-9]{{1,{safe_digits}}}\z", lambda a: a.cast(context.dtype), slow)


_FLOAT = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_HEX_FLOAT = re.compile(
    r"([+-]?)0[xX](?=\.?[0-9a-fA-F])([0-9a-fA-F]*)\.?([0-9a-fA-F]*)[pP]([+-]?[0-9]+)[fFdD]?"
)
_SPECIAL = {
    "inf": np.inf,
    "+inf": np.inf,
    "infinity": np.inf,
    "+infinity": np.inf,
    "-inf": -np.inf,
    "-infinity": -np.inf,
    "nan": np.nan,
}


def _parse_hexadecimal(match: re.Match[str], dtype: pa.DataType) -> float:
    """Parse a number such as ``0x1.8p3`` to a double; for floats, to one that rounds to the float of the exact number.

    The nearest double may lie halfway between two floats although the exact number does not. For example,
    ``0x1.000001000000001p0`` is more than 1 + 2^-24, but its double is not, so rounding the double to a float would give 1.
    To avoid this, the double is rounded to odd: if it is inexact, it is one of the two doubles next to the exact number, and
    the one whose last bit is 1 is returned.
    """
    sign, whole, fraction, exponent = match.groups()
    try:
        number = float.fromhex(match[0].rstrip("fFdD"))
    except OverflowError:
        number = -math.inf if sign == "-" else math.inf
    if dtype != t.FLOAT or number == 0 or math.isinf(number):
        return number
    # The double is neither 0 nor infinite, so the number of digits limits the exponent, and 2 ** power fits
    # into memory. The exponent may have thousands of leading zeros, which int() rejects but Decimal() accepts.
    power = int(decimal.Decimal(exponent)) - 4 * len(fraction)
    exact = int(whole + fraction, 16) * Fraction(2) ** power
    size = abs(number)
    if exact != size and not np.float64(size).view(np.int64) & 1:
        size = math.nextafter(size, math.inf if exact > size else 0)
    return math.copysign(size, number)


@cast_rule("string", "fractional")
def _string_float(vector: Vector, context: CallContext) -> Data:
    def slow(value: str) -> float | None:
        text = value.strip(_JAVA_TRIM)
        if _FLOAT.fullmatch(text):
            if text[-1] in "yN":
                return _SPECIAL[text.lower().removeprefix("+").removeprefix("-")] * (
                    -1 if text[0] == "-" else 1
                )
            return float(pa.scalar(text.rstrip("fFdD")).cast(context.dtype).as_py())
        hexadecimal = _HEX_FLOAT.fullmatch(text)
        if hexadecimal is not None:
            return _parse_hexadecimal(hexadecimal, context.dtype)
        return _SPECIAL.get(text.lower())

    return parse(vector, context, r"\A-?[0-9]{1,30}(\.[0-9]{1,30})?\z", lambda a: a.cast(context.dtype), slow)


_DECIMAL = re.compile(r"[+-]?(?:\d+\.?(?P<decimals>\d*)|\.(?P<fraction>\d+))(?:[eE](?P<exponent>[+-]?\d+))?")
_MAX_SCALE = 2**31 - 1


def _has_java_scale(match: re.Match[str]) -> bool:
    """Return whether the exponent and the scale of a decimal string are integers of 32 bits, as in Java."""
    # Decimal() accepts exponents of any length, unlike int(), and comparisons of decimals are exact.
    exponent = decimal.Decimal(match["exponent"] or 0)
    decimal_places = len(match["decimals"] or match["fraction"] or "")
    return decimal_places - _MAX_SCALE <= exponent <= _MAX_SCALE  # the scale is decimal_places - exponent


@cast_rule("string", "decimal")
def _string_decimal(vector: Vector, context: CallContext) -> Data:
    out = context.dtype
    wide = pa.decimal256(76, 38)
    unit = decimal.Decimal(1).scaleb(-out.scale)
    limit = decimal.Decimal(10) ** (out.precision - out.scale)
    ansi = context.mode is EvalMode.ANSI

    def slow(value: str) -> decimal.Decimal | None:
        text = value.strip(_JAVA_TRIM)
        match = _DECIMAL.fullmatch(text)
        if match is None or max(text) > "\uffff":  # Java parses digits by 16-bit characters
            return None
        if not _has_java_scale(match):
            return None
        with decimal.localcontext(decimal.Context(prec=500, Emax=10**15, Emin=-(10**15))):
            number = decimal.Decimal(text)
            # Spark counts the digits before the point, and for a negative scale those the exponent stands for
            integer_digits = number.adjusted() + 1 if number else 1
            if integer_digits > 38:
                if ansi:
                    raise ExecutionError(
                        "NUMERIC_OUT_OF_SUPPORTED_RANGE",
                        f"The value {value} cannot be interpreted as a numeric.",
                    )
                return _NULL
            if number.adjusted() < -60:
                number = decimal.Decimal(0)
            number = number.quantize(unit, decimal.ROUND_HALF_UP)
            if abs(number) >= limit:
                if ansi:
                    raise dk.out_of_range(context)
                return _NULL
            return number

    def fast(array: pa.Array) -> pa.Array:
        fitted = dk.round_to_decimal128(array.cast(wide), context)
        return fitted

    return parse_decimal(vector, context, fast, slow)


_NULL = decimal.Decimal("NaN")


def parse_decimal(vector: Vector, context: CallContext, fast: Any, slow: Callable[[str], Any]) -> pa.Array:
    """Parse decimals as ``parse`` does; out-of-range values are NULL but not malformed. Results are narrow if they fit."""

    def checked(value: str) -> Any:
        number = slow(value)
        if number is None and context.mode is EvalMode.ANSI:
            raise invalid_input(value, vector.dtype, context.dtype)
        return None if number is _NULL else number

    data = vector.data
    matches = pc.match_substring_regex(data, r"\A-?[0-9]{1,37}(\.[0-9]{1,38})?\z")
    odd = pc.fill_null(pc.invert(matches), False)
    if not pc.any(odd).as_py():
        return fast(data)
    rest = data.filter(odd)
    inner = CallContext(context.dtype, context.mode, context.tz, len(rest))
    parsed = per_distinct(checked, [Vector(t.STRING, rest)], inner)
    regular = fast(if_else(odd, pa.scalar(None, t.STRING), data))
    wide = Vector(context.dtype, regular).plain()
    return dk.narrow_if_possible(pc.replace_with_mask(wide, odd, parsed))


@cast_rule("string", "boolean")
def _string_bool(vector: Vector, context: CallContext) -> Data:
    def slow(value: str) -> bool | None:
        text = value.strip(WHITESPACE).lower()
        if text in ("t", "true", "y", "yes", "1"):
            return True
        return False if text in ("f", "false", "n", "no", "0") else None

    return parse(vector, context, r"\A(true|false)\z", lambda a: pc.equal(a, "true"), slow)


@cast_rule("string", "binary")
def _string_binary(vector: Vector, context: CallContext) -> Data:
    return vector.data.cast(t.BINARY)


@cast_rule("boolean", "string")
def _bool_string(vector: Vector, context: CallContext) -> Data:
    return pc.if_else(vector.data, "true", "false")


@cast_rule("integral", "string")
def _int_string(vector: Vector, context: CallContext) -> Data:
    return vector.data.cast(t.STRING)


@cast_rule("fractional", "string")
def _float_string(vector: Vector, context: CallContext) -> Data:
    return text_array(vector.data)


@cast_rule("decimal", "string")
def _decimal_string(vector: Vector, context: CallContext) -> Data:
    """Print plain digits; outside of ANSI mode like ``BigDecimal.toString``, which uses an exponent below 1e-6."""
    scale = vector.dtype.scale
    if scale > 6 and context.mode is EvalMode.LEGACY:
        return per_distinct(str, [Vector(vector.dtype, vector.plain())], context)
    if not vector.is_narrow:
        return per_distinct(lambda d: f"{d:f}", [Vector(vector.dtype, vector.plain())], context)
    if scale == 0:
        return vector.data.cast(t.STRING)
    raw = np.asarray(dk.as_int64(vector.data))
    sign = pc.if_else(pc.less(vector.data, 0), "-", "")
    size = np.abs(raw).astype(np.uint64) if scale > 18 else np.abs(raw)
    unit = 10 ** min(scale, 19)  # int64 has 19 digits: with more after the point the whole part is 0
    whole = pa.array(size // np.uint64(unit) if scale > 18 else size // unit).cast(t.STRING)
    rest = pa.array(size % np.uint64(unit) if scale > 18 else size % unit).cast(t.STRING)
    rest = pc.utf8_lpad(rest, width=scale, padding="0")
    return pc.binary_join_element_wise(sign, whole, ".", rest, "")
