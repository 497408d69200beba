"""Infers the column types of CSV files from all values of all files, by Spark's rules (``inferSchema``)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.functions.casts.temporal import parse_timestamp
from kquery_spark.sources.csv.options import CsvOptions
from kquery_spark.sources.csv.values import (
    is_number,
    parse_iso_date,
    parse_whole_number,
    parses_as_double,
    quick_cast,
)
from kquery_spark.types import names as t

_FRACTION = r"\.[0-9]+\z|[eE]-[0-9]*[1-9]"
_YEAR_LIKE = r"\A[+-]?[0-9]{4,7}\z"


@dataclass
class ColumnType:
    """The evidence about one column so far: the families of its values' types, and the width of its numbers.

    families: any of number, date, timestamp, boolean, string. bits: 32 or 64 if there are integers of this width. digits:
    the most digits of an integer beyond 64 bits. double: whether a number needs a double. year_like: whether an integer may
    be a year. other_digits: whether an integer has digits that are not ASCII.
    """

    name: str
    families: set[str] = field(default_factory=set)
    bits: int = 0
    digits: int = 0
    double: bool = False
    year_like: bool = False
    other_digits: bool = False

    def add(self, strings: pa.Array, options: CsvOptions) -> None:
        """Add the values of one block."""
        strings = strings.drop_null()
        strings = strings.filter(pc.not_equal(strings, ""))
        if not len(strings) or "string" in self.families:
            return
        if self._add_numbers(strings):
            return
        for dtype, family in ((t.DATE, "date"), (t.TIMESTAMP_NTZ, "timestamp")):
            if quick_cast(strings, dtype) is not None:
                self.families.add(family)
                return
        for text in pc.unique(strings).to_pylist():
            self._add_one(text, options)

    def _add_numbers(self, strings: pa.Array) -> bool:
        for dtype, bits in ((t.INT, 32), (t.LONG, 64)):
            if quick_cast(strings, dtype) is not None:
                self.bits = max(self.bits, bits)
                break
        else:
            # Unless a number certainly has a fraction, all may be whole, like 1.5e1, for which Spark infers a decimal.
            fraction = pc.any(pc.match_substring_regex(strings, _FRACTION)).as_py()
            if not fraction or quick_cast(strings, t.DOUBLE) is None:
                return False
            self.double = True
        self.families.add("number")
        self.year_like |= bool(pc.any(pc.match_substring_regex(strings, _YEAR_LIKE)).as_py())
        return True

    def _add_one(self, text: str, options: CsvOptions) -> None:
        whole_number = parse_whole_number(text)
        if whole_number is not None:
            self.families.add("number")
            self.other_digits |= not text.isascii()
            self.year_like |= re.search(_YEAR_LIKE.replace(r"\z", r"\Z"), text) is not None
            self._add_integer(whole_number)
        elif is_number(text) and Decimal(text).as_tuple().exponent == 0:
            self.families.add("number")
            self._add_decimal(Decimal(text))
        elif parses_as_double(text, options):
            self.families.add("number")
            self.double = True
        elif parse_iso_date(text) is not None:
            self.families.add("date")
        elif parse_timestamp(text, options.time_zone or "UTC") is not None:
            self.families.add("timestamp")
        else:
            self.families.add("boolean" if text.lower() in ("true", "false") else "string")

    def _add_integer(self, value: Decimal) -> None:
        if -(2**31) <= value < 2**31:
            self.bits = max(self.bits, 32)
        elif -(2**63) <= value < 2**63:
            self.bits = 64
        else:
            self._add_decimal(value)

    def _add_decimal(self, value: Decimal) -> None:
        digits = value.adjusted() + 1 if value else 1
        if digits <= 38:
            self.digits = max(self.digits, digits)
        else:
            self.double = True

    def result(self, tz: str) -> pa.DataType:
        """The inferred type. Raises Unsupported if Spark's result depends on the order in which it reads the rows."""
        if not self.families or "string" in self.families:
            return t.STRING
        if len(self.families) > 1:
            if "timestamp" in self.families and ("date" in self.families or self.year_like):
                raise self._depends_on_order()
            return t.STRING
        family = next(iter(self.families))
        if family == "number":
            return self._number()
        return {"date": t.DATE, "timestamp": t.timestamp(tz), "boolean": t.BOOL}[family]

    def _number(self) -> pa.DataType:
        if self.double:
            if self.other_digits:
                raise self._depends_on_order()  # Java parses digits of other scripts as integers, but not as doubles
            return t.DOUBLE
        if self.digits:
            if self.digits < {0: 0, 32: 10, 64: 20}[self.bits]:
                # Spark gives an integer the digits of its type before the first decimal, but its own digits after it
                raise self._depends_on_order()
            return t.decimal(self.digits, 0)
        return t.LONG if self.bits == 64 else t.INT

    def _depends_on_order(self) -> Unsupported:
        return Unsupported(
            f"the type Spark infers for the CSV column {self.name} depends on the order of its rows"
        )


def safe_names(header: list[str], options: CsvOptions) -> list[str]:
    """Column names from a header line, as Spark makes them: missing and duplicate names get the column's index."""
    if not options.header:
        return [options.names.format(i, i + 1) for i in range(len(header))]
    keys = [name if options.case_sensitive else name.lower() for name in header]
    names = []
    for i, (name, key) in enumerate(zip(header, keys, strict=True)):
        if name in ("", options.null_value):
            names.append(f"_c{i}")
        else:
            names.append(f"{name}{i}" if keys.count(key) > 1 else name)
    return names
