"""Partition columns: their values and types from directory names, by Spark's rules, and their place in a table."""

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.functions.casts.temporal import parse_date, parse_timestamp
from kquery_spark.sources.base import ColumnRange, DataFile
from kquery_spark.types import names as t
from kquery_spark.types.vector import fill

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_WORDS = re.compile(r"[+-]?(?:NaN|Infinity)|\s.*|.*\s|[+-]?0[xX].*", re.DOTALL)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9])?")
_DATE_LIKE = re.compile(r"[+-]?[0-9]{4,7}-.*|T?[0-9]{1,2}:.*", re.DOTALL)


def values_in_path(relative: str, path: str) -> dict[str, str | None]:
    """Return the strings of the partition values in the directory names of a relative path, by column.

    path: the whole path, for errors. Raises SourceError for directories that Spark rejects.
    """
    values: dict[str, str | None] = {}
    directories = relative.split("/")[:-1]
    named = [part for part in directories if "=" in part]
    if named and len(named) < len(directories):
        raise SourceError(f"{path} is below both partition directories and other directories")
    for part in named:
        key, value = part.split("=", 1)
        if not key or not value:
            missing = "VALUE" if key else "NAME"
            raise SourceError(f"[EMPTY_PARTITION_COLUMN_{missing}] {path} is below the directory {part}")
        if _unescaped(key) in values:
            raise SourceError(f"[COLUMN_ALREADY_EXISTS] {path} is below two directories for column {key}")
        values[_unescaped(key)] = None if value == _HIVE_NULL else _unescaped(value)
    return values


def _unescaped(name: str) -> str:
    """Unescape the name of a partition directory like Spark's ``unescapePathName``: ``%E9`` is the character U+00E9."""
    return unquote(name, encoding="latin-1")


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


def with_partitions(columns: Sequence[pa.Field], partitions: Sequence[pa.Field]) -> list[pa.Field]:
    """Return a table's columns: the columns of its files, then the partition columns.

    A column that is both keeps its position in the files, but has the type and the values of the partition column, as in
    Spark.
    """
    typed = {f.name: f for f in partitions}
    names = {c.name for c in columns}
    return [*(typed.get(c.name, c) for c in columns), *(f for f in partitions if f.name not in names)]


def partition_range(file: DataFile, partitions: Sequence[str], column: str, rows: int) -> ColumnRange | None:
    """Return the range of a partition column in a file, which is its only value; None for other columns."""
    if column not in partitions:
        return None
    value = file.partition[list(partitions).index(column)]
    return ColumnRange(value, value, rows if value is None else 0)


def constant(value: Any, dtype: pa.DataType, length: int) -> pa.Array:
    """Build a column with one value for all rows; a string becomes a dictionary with one entry."""
    if value is None:
        return pa.nulls(length, dtype)
    if dtype == t.STRING:
        indices = pa.repeat(pa.scalar(0, pa.int32()), length)
        return pa.DictionaryArray.from_arrays(indices, pa.array([value], t.STRING))
    storage = pa.int32() if dtype == t.DATE else pa.int64()
    if pa.types.is_temporal(dtype) and isinstance(value, int):
        return fill(pa.scalar(value, storage), length).view(dtype)
    return fill(pa.scalar(value, dtype), length)
