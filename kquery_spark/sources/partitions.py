"""Infers the types of partition columns from directory names, by Spark's rules."""

from __future__ import annotations

import decimal
import re
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.functions.casts.temporal import parse_date, parse_timestamp
from kquery_spark.types import names as t

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_WORDS = re.compile(r"[+-]?(?:NaN|Infinity)|\s.*|.*\s|[+-]?0[xX].*", re.DOTALL)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9])?")
_DATE_LIKE = re.compile(r"[+-]?[0-9]{4,7}-.*|T?[0-9]{1,2}:.*", re.DOTALL)


def infer_partitions(
    raw: dict[str, list[str | None]], tz: str = "UTC"
) -> tuple[list[pa.Field], list[tuple[Any, ...]]]:
    """The partition columns, and one tuple of typed values per file. raw: strings by column."""
    fields, columns = [], []
    for name, strings in raw.items():
        dtype = _common([_type_of(x, tz) for x in strings if x is not None], tz)
        fields.append(pa.field(name, dtype))
        columns.append([None if x is None else partition_value(x, dtype) for x in strings])
    return fields, list(zip(*columns, strict=True)) if columns else []


def _type_of(text: str, tz: str) -> pa.DataType:
    if _WHOLE.fullmatch(text):
        return _integer_type(int(text))
    if _DOUBLE.fullmatch(text):
        if _names_decimal(text):
            raise Unsupported(f"the partition value {text!r} is not supported; Spark takes it for a decimal")
        return t.DOUBLE
    if _WORDS.fullmatch(text):
        raise Unsupported(f"the partition value {text!r} is not supported; declare it as a string")
    if _TIMESTAMP.fullmatch(text) and parse_timestamp(text, tz) is not None:
        return t.timestamp(tz)
    if _DATE.fullmatch(text):
        return t.DATE if parse_date(text) is not None else t.STRING
    if _DATE_LIKE.fullmatch(text):
        raise Unsupported(f"the partition value {text!r} is not supported; it is almost a date or a time")
    return t.STRING


def _names_decimal(text: str) -> bool:
    return text[-1] not in "fFdD" and int(decimal.Decimal(text).as_tuple().exponent) >= 0


def _integer_type(value: int) -> pa.DataType:
    """The narrowest type for an integer: int, bigint, decimal, or double for more digits than a decimal has."""
    if -(2**31) <= value < 2**31:
        return t.INT
    if -(2**63) <= value < 2**63:
        return t.LONG
    digits = len(str(abs(value)))
    return t.decimal(digits, 0) if digits <= 38 else t.DOUBLE


_WIDENED = {frozenset({t.INT, t.LONG}): t.LONG, frozenset({t.INT, t.DOUBLE}): t.DOUBLE}


def _common(types: list[pa.DataType], tz: str) -> pa.DataType:
    """The common type of the values of a column; string if no other type fits."""
    kinds = frozenset(types)
    if not kinds:
        return t.STRING
    if len(kinds) == 1:
        return types[0]
    if kinds == {t.DATE, t.timestamp(tz)}:
        return t.timestamp(tz)
    if kinds in _WIDENED:
        return _WIDENED[kinds]
    digits = [_decimal_digits(kind) for kind in kinds]
    if all(digits):
        return t.decimal(max(digits), 0)
    if kinds >= {t.INT, t.LONG, t.DOUBLE}:
        raise Unsupported("a partition column of ints, bigints and doubles is not supported")
    return t.STRING


def _decimal_digits(dtype: pa.DataType) -> int:
    """Return the precision of a decimal that can hold the type; 0 for types other than integers and decimals."""
    return int(dtype.precision) if t.is_decimal(dtype) else {t.INT: 10, t.LONG: 20}.get(dtype, 0)


def plain_value(scalar: pa.Scalar) -> Any:
    """The plain value of an Arrow scalar, as in literals: dates as days, timestamps as microseconds."""
    if pa.types.is_date32(scalar.type):
        return scalar.cast(pa.int32()).as_py()
    if t.has_long_counts(scalar.type) or pa.types.is_duration(scalar.type):
        return scalar.cast(pa.int64()).as_py()
    return scalar.as_py()


def partition_value(text: str, dtype: pa.DataType) -> Any:
    """Parse the value in a directory name to a plain value: dates as days, timestamps as microseconds."""
    if t.is_integral(dtype):
        return int(text)
    if dtype == t.DOUBLE:
        return float(text.rstrip("fFdD"))
    if t.is_decimal(dtype):
        return decimal.Decimal(text)
    if dtype == t.DATE:
        return parse_date(text)
    if t.is_timestamp(dtype):
        return parse_timestamp(text, dtype.tz)
    return text
