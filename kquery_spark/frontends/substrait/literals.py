"""Translates literals between Substrait and the engine."""

from __future__ import annotations

from decimal import Context, Decimal

import pyarrow as pa

from kquery_spark.errors import SubstraitError
from kquery_spark.expr import Literal
from kquery_spark.expr.constants import literal_vector
from kquery_spark.frontends.substrait.messages import Message, kind_of, proto
from kquery_spark.frontends.substrait.types import (
    MICROSECONDS,
    SIMPLE_TYPES,
    TypeReader,
    check_precision,
    decimal_type,
    write_type,
)
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS

_LITERAL_KINDS = {"bool": "boolean"}
"""The kind of literal for each kind of type whose literals have another name."""
_MESSAGE_TYPES = ("varchar", "interval_year")
"""The kinds of types whose literals are messages."""
_SIMPLE = {
    _LITERAL_KINDS.get(kind, kind): dtype
    for kind, dtype in SIMPLE_TYPES.items()
    if kind not in _MESSAGE_TYPES
}
"""The engine's type for each kind of literal whose field is the value, not a message."""
_SIMPLE_NAMES = {dtype: name for name, dtype in _SIMPLE.items() if name != "timestamp"}
_INTEGERS = ("i8", "i16", "i32", "i64")
_UNSIGNED = 1
"""The type variation of unsigned integers in plans of DataFusion, which does not declare it."""
_MONTHS_PER_YEAR = 12
_EXACT = Context(prec=40)  # more digits than any decimal has, so scaleb never rounds


def read_literal(message: Message, types: TypeReader) -> Literal:
    """Return a literal; raises SubstraitError if its type is not supported, or its value does not fit the type."""
    kind = kind_of(message, "literal_type", "a literal")
    if kind == "null":
        dtype, _ = types.read(message.null)
        return _checked(Literal(None, dtype), kind)
    variation = message.type_variation_reference
    # A variation that the plan declares can be anything. One that it does not declare is DataFusion's: an unsigned integer,
    # or the layout of a string, which does not matter for a value.
    if variation in types.declared:
        raise SubstraitError(f"a literal of the type {kind} in variation {variation} is not supported")
    if variation == _UNSIGNED and kind in _INTEGERS:
        return _unsigned(getattr(message, kind))
    if variation and kind not in ("string", "binary", "var_char"):
        raise SubstraitError(f"a literal of the type {kind} in variation {variation} is not supported")
    return _checked(_literal(kind, getattr(message, kind), types), kind)


def _unsigned(value: int) -> Literal:
    """Return the bigint of an unsigned integer. The field of the message is signed, so values from 2**63 on are negative."""
    if value < 0:
        raise SubstraitError(f"the unsigned literal {value % 2**64} does not fit a bigint")
    return Literal(value, t.LONG)


def _literal(kind: str, value: Message, types: TypeReader) -> Literal:
    if kind in _SIMPLE:
        return Literal(value, _SIMPLE[kind])
    match kind:
        case "var_char":
            return Literal(value.value, t.STRING)
        case "decimal":
            dtype = decimal_type(value.precision, value.scale)
            if len(value.value) != 16:
                raise SubstraitError(f"a decimal literal has {len(value.value)} bytes, not 16")
            digits = int.from_bytes(value.value, "little", signed=True)
            if abs(digits) >= 10**value.precision:
                raise SubstraitError(f"the literal {digits} does not fit {t.spark_name(dtype)}")
            return Literal(Decimal(digits).scaleb(-value.scale, _EXACT), dtype)
        case "timestamp_tz":
            return Literal(value, t.timestamp(types.time_zone))
        case "precision_timestamp":
            check_precision(kind, value.precision)
            return Literal(value.value, t.TIMESTAMP_NTZ)
        case "precision_timestamp_tz":
            check_precision(kind, value.precision)
            return Literal(value.value, t.timestamp(types.time_zone))
        case "interval_year_to_month":
            return Literal(value.years * _MONTHS_PER_YEAR + value.months, t.YEAR_MONTH)
        case "interval_day_to_second":
            return Literal(_interval_micros(value), t.DAY_TIME)
    raise SubstraitError(f"a literal of the type {kind} is not supported")


def _interval_micros(value: Message) -> int:
    """Return the microseconds of an interval; earlier versions of the specification have a field for them."""
    field = value.WhichOneof("precision_mode")
    if field == "precision":
        check_precision("interval_day", value.precision)
        fraction = value.subseconds
    else:
        fraction = value.microseconds if field == "microseconds" else value.subseconds
    return int(value.days * DAY_MICROS + value.seconds * 1_000_000 + fraction)


def _checked(literal: Literal, kind: str) -> Literal:
    """Return a literal; raises SubstraitError unless the engine can represent it."""
    if not t.is_spark_type(literal.type):
        raise SubstraitError(f"a literal of the type {kind} is not supported")
    try:
        literal_vector(literal)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, KeyError) as error:
        raise SubstraitError(
            f"the literal {literal.value!r} does not fit {t.spark_name(literal.type)}"
        ) from error
    return literal


def write_literal(literal: Literal) -> Message:
    """Return the message for a literal; raises SubstraitError if Substrait has no literals of its type."""
    message = proto().Expression.Literal()
    dtype, value = literal.dtype, literal.value
    if value is None:
        message.nullable = True
        message.null.CopyFrom(write_type(dtype, True))
    elif dtype in _SIMPLE_NAMES:
        setattr(message, _SIMPLE_NAMES[dtype], value)
    elif t.is_decimal(dtype):
        digits = int(Decimal(value).scaleb(dtype.scale, _EXACT))
        message.decimal.value = digits.to_bytes(16, "little", signed=True)
        message.decimal.precision, message.decimal.scale = dtype.precision, dtype.scale
    elif pa.types.is_timestamp(dtype):
        inner = message.precision_timestamp if dtype.tz is None else message.precision_timestamp_tz
        inner.precision, inner.value = MICROSECONDS, value
    elif dtype == t.YEAR_MONTH:
        years = int(value / _MONTHS_PER_YEAR)
        message.interval_year_to_month.years = years
        message.interval_year_to_month.months = value - years * _MONTHS_PER_YEAR
    elif dtype == t.DAY_TIME:
        days, micros_of_day = divmod(value, DAY_MICROS)
        seconds, micros = divmod(micros_of_day, 1_000_000)
        inner = message.interval_day_to_second
        inner.days, inner.seconds, inner.precision, inner.subseconds = days, seconds, MICROSECONDS, micros
    else:
        raise SubstraitError(f"Substrait has no literal of type {t.spark_name(dtype)}")
    return message
