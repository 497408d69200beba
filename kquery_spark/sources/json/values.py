"""Converts parsed JSON values like Spark: a value of a wrong type becomes NULL and marks its record as bad."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.functions.casts.floats import java_text
from kquery_spark.kernels.json_documents import to_json
from kquery_spark.kernels.json_parser import Node, parse_string
from kquery_spark.sources.csv.values import converted, parse_decimal, parse_fractional
from kquery_spark.sources.hybrid_calendar import GREGORIAN_START_DAY
from kquery_spark.sources.json.options import JsonOptions
from kquery_spark.types import names as t

_DAYS = re.compile(r"[+-]?[0-9]{1,10}")
_DOUBLES = {
    "NaN": np.nan, "+INF": np.inf, "-INF": -np.inf,
    "Infinity": np.inf, "+Infinity": np.inf, "-Infinity": -np.inf,
}  # fmt: skip


def check_type(name: str, dtype: pa.DataType) -> None:
    """Raise Unsupported for a column type that the engine does not read from JSON."""
    if pa.types.is_struct(dtype):
        _check_struct(name, dtype)
    elif pa.types.is_list(dtype):
        check_type(name, dtype.value_type)
    elif not (dtype in (t.STRING, t.BOOL) or t.is_numeric(dtype) or is_date_or_timestamp(dtype)):
        raise Unsupported(f"the JSON column {name} of type {t.spark_name(dtype)} is not supported")


def _check_struct(name: str, dtype: pa.DataType) -> None:
    if not dtype.num_fields:
        raise Unsupported(f"the JSON column {name} of a struct without fields is not supported")
    if len({f.name for f in dtype}) < dtype.num_fields:
        raise Unsupported(f"the JSON column {name} has a field twice, which is not supported")
    for field in dtype:
        check_type(f"{name}.{field.name}", field.type)


def is_date_or_timestamp(dtype: pa.DataType) -> bool:
    """True for dates and timestamps. In JSON they are strings, which Arrow does not parse as Spark does."""
    return bool(dtype in (t.DATE, t.TIMESTAMP_NTZ) or t.is_timestamp(dtype))


def from_strings(strings: pa.Array, dtype: pa.DataType, options: JsonOptions) -> pa.Array:
    """Parse dates or timestamps; NULL for NULL and for malformed strings."""
    values = converted(strings, dtype, options.strings)
    if dtype != t.DATE or options.strings.strict_dates or values.null_count == strings.null_count:
        return values
    # A string that is not a date may be a number of days since 1970, which Spark 1.5 wrote.
    odd = pc.and_(values.is_null(), strings.is_valid())
    days = [_days(text) for text in strings.filter(odd).to_pylist()]
    return pc.replace_with_mask(values, odd, pa.array(days, pa.int32()).cast(t.DATE))


def _days(text: str) -> int | None:
    if _DAYS.fullmatch(text) is None or not -(2**31) <= int(text) < 2**31:
        return None
    if int(text) < GREGORIAN_START_DAY:
        raise SourceError(f"the date {text!r}, a number of days before 1582, is not supported")
    return int(text)


class BadValue(Exception):
    """A value does not have the type of its column."""


def _check_kind(node: Node, kind: str) -> None:
    if node.kind != kind:
        raise BadValue


def _integer(node: Node, dtype: pa.DataType) -> int:
    _check_kind(node, "integer")
    value = int(node.value)
    if dtype == t.BYTE and 127 < value < 256:
        return value - 256  # Jackson accepts unsigned bytes
    bits = dtype.bit_width - 1
    if not -(1 << bits) <= value < 1 << bits:
        raise BadValue
    return value


def _decimal(node: Node, dtype: pa.DataType) -> Decimal:
    if node.kind not in ("integer", "float", "string") or not node.value:
        raise BadValue
    number = parse_decimal(node.value, dtype)
    if number is None:
        raise BadValue
    return number


class Converter:
    """Converts parsed values to values for ``pa.array``. partial: True if a part of a value had a wrong type."""

    def __init__(self, options: JsonOptions) -> None:
        self._options = options
        self._known: dict[tuple[pa.DataType, str], Any] = {}
        self.partial = False

    def row(self, node: Node, columns: dict[str, tuple[int, pa.DataType]], row: list[Any]) -> None:
        """Fill the columns of one record. Of duplicate names, the last one with a good value counts."""
        seen: set[str] = set()
        for name, child in node.fields():
            column = columns.get(name)
            if column is None:
                continue
            if self._options.filters and name in seen:
                raise SourceError(f"a record has {name} twice, and Spark also filters by the first value")
            seen.add(name)
            try:
                row[column[0]] = self.value(child, column[1])
            except BadValue:
                self.partial = True

    def value(self, node: Node, dtype: pa.DataType) -> Any:
        """Convert a value of a type: dates to days, timestamps to microseconds. Raises BadValue for a wrong type."""
        kind = node.kind
        if kind == "null":
            return None
        if dtype == t.STRING:
            return node.value if kind == "string" else self._as_text(node)
        if pa.types.is_struct(dtype):
            return self._struct(node, dtype)
        if pa.types.is_list(dtype):
            _check_kind(node, "array")
            return [self.value(item, dtype.value_type) for item in node.items]
        if dtype == t.BOOL:
            _check_kind(node, "boolean")
            return node.value == "true"
        if is_date_or_timestamp(dtype):
            return self._date_or_timestamp(node, dtype)
        return self._number(node, dtype)

    def _as_text(self, node: Node) -> str:
        """Return a value that is not a string as a string."""
        if self._options.exact_strings:
            return node.raw
        document = parse_string(node.raw)
        if document is None:
            raise SourceError("a value with NaN or an infinity that is read as a string is not supported")
        return to_json(document, java_text)

    def _number(self, node: Node, dtype: pa.DataType) -> Any:
        if t.is_integral(dtype):
            return _integer(node, dtype)
        if t.is_decimal(dtype):
            return _decimal(node, dtype)
        return self._fractional(node, dtype)

    def _struct(self, node: Node, dtype: pa.DataType) -> dict[str, Any]:
        _check_kind(node, "object")
        types = {f.name: f.type for f in dtype}
        fields: dict[str, Any] = {}
        for name, child in node.fields():
            if name not in types:
                continue
            try:
                fields[name] = self.value(child, types[name])
            except BadValue:
                self.partial = True
        return fields

    def _fractional(self, node: Node, dtype: pa.DataType) -> Any:
        if node.kind in ("integer", "float"):
            # To Jackson, -0 is the integer 0; only -0.0 is a negative zero.
            text = "0" if node.value == "-0" else node.value
            return parse_fractional(text, dtype, self._options.strings)
        if node.kind in ("nonfinite number", "string") and node.value in _DOUBLES:
            return _DOUBLES[node.value]
        raise BadValue

    def _date_or_timestamp(self, node: Node, dtype: pa.DataType) -> int:
        if node.kind == "integer" and t.is_timestamp(dtype):
            seconds = int(node.value)
            if not -(2**63) <= seconds < 2**63:
                raise BadValue
            # Spark's multiplication wraps around on overflow.
            return (seconds * 1_000_000 + 2**63) % 2**64 - 2**63
        if node.kind != "string" or not node.value:
            raise BadValue
        key = (dtype, node.value)
        if key not in self._known:
            storage = pa.int32() if dtype == t.DATE else pa.int64()
            array = from_strings(pa.array([node.value], t.STRING), dtype, self._options)
            self._known[key] = array.view(storage)[0].as_py()
        encoded: int | None = self._known[key]
        if encoded is None:
            raise BadValue
        return encoded
