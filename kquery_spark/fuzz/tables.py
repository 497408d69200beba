"""Generates random tables: every type, NULL, NaN, extremes, few and many distinct values, and no rows at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any, Literal

import pyarrow as pa

from kquery_spark.types import names as t

Format = Literal["parquet", "orc", "csv", "json"]


@dataclass(frozen=True)
class FuzzTable:
    """A table with a name. pieces: the number of its files, so that it can have several splits."""

    name: str
    data: pa.Table
    pieces: int = 1
    format: Format = "parquet"

    def columns(self) -> list[tuple[str, str]]:
        """Return the name and the kind of each column (``kinds.py``)."""
        return [(field.name, kind_of(field.type)) for field in self.data.schema]


_PAIR = pa.struct([("x", pa.int32()), ("s", pa.string())])
_DEEP = pa.struct([("a", pa.list_(pa.int32())), ("d", pa.date32())])
# Doubles are small multiples of 1/4, so that their sums are exact in any order.
_STRINGS = ("", "a", "A", "ab", "abc", " a ", "zz", "é", "ß", "日本", "10", "-3", "2.5", "%", "a_b", "x" * 40)
_POOLS: dict[pa.DataType, Sequence[Any]] = {
    pa.bool_(): (True, False),
    pa.int8(): (0, 1, -1, 127, -128, 5),
    pa.int16(): (0, 1, -1, 32767, -32768, 300),
    pa.int32(): (0, 1, -1, 2, 3, 7, 100, 2**31 - 1, -(2**31)),
    pa.int64(): (0, 1, -1, 2, 5, 10**12, 2**63 - 1, -(2**63)),
    pa.float32(): (0.0, -0.0, 1.0, -1.5, 0.25, float("nan"), float("inf"), float("-inf"), 4096.5),
    pa.float64(): (0.0, -0.0, 1.0, -1.5, 0.25, float("nan"), float("inf"), float("-inf"), 1e9 + 0.25),
    pa.decimal128(9, 2): ("0.00", "1.00", "-1.25", "9999999.99", "-9999999.99", "0.01"),
    pa.decimal128(20, 4): ("0.0000", "1.5000", "-2.2500", "9999999999999999.9999", "0.0001"),
    pa.string(): _STRINGS,
    pa.date32(): (
        date(1970, 1, 1),
        date(2000, 2, 29),
        date(1969, 12, 31),
        date(2024, 12, 31),
        date(1600, 1, 1),
    ),
    pa.timestamp("us", "UTC"): (
        datetime(1970, 1, 1, tzinfo=timezone.utc),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc),
        datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=timezone.utc),
        datetime(2038, 1, 19, 3, 14, 8, tzinfo=timezone.utc),
    ),
    pa.timestamp("us"): (
        datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999_999),
        datetime(2024, 3, 31, 2, 30),
    ),
    pa.binary(): (b"", b"a", b"\x00", b"\xff\xfe", b"ab"),
    pa.list_(pa.int32()): ([], [1], [1, None], [None], [2, 1, 1], [2**31 - 1]),
    _PAIR: (
        {"x": 1, "s": "a"},
        {"x": None, "s": "a"},
        {"x": 1, "s": None},
        {"x": -1, "s": ""},
    ),
    pa.list_(pa.string()): ([], ["a"], ["b", None, "a"], [None], ["10", "é", ""]),
    pa.list_(pa.float64()): ([], [0.0], [float("nan"), None, -0.0], [1.5, 1.5], [float("-inf"), 2.0]),
    pa.list_(_PAIR): ([], [{"x": 1, "s": "a"}], [None, {"x": None, "s": "b"}], [{"x": 2, "s": None}] * 2),
    _DEEP: (
        {"a": [1, None], "d": date(2000, 2, 29)},
        {"a": None, "d": date(1970, 1, 1)},
        {"a": [], "d": None},
    ),
    pa.map_(pa.string(), pa.int32()): ([], [("a", 1)], [("a", None), ("b", 2)], [("10", -7), ("a", 3)]),
}
TYPES = tuple(_POOLS)
_FLAT = tuple(kind for kind in TYPES if not pa.types.is_nested(kind))
TYPES_OF: dict[Format, tuple[pa.DataType, ...]] = {
    "parquet": TYPES,
    "orc": tuple(
        kind for kind in TYPES if kind != _DEEP
    ),  # the engine falls back to Spark for dates in nested ORC types
    "csv": tuple(kind for kind in _FLAT if kind != pa.binary()),
    "json": tuple(kind for kind in TYPES if kind != pa.binary() and not pa.types.is_map(kind)),
}
"""The types that tables of each format can have."""
FORMATS = tuple(TYPES_OF)


def kind_of(arrow: pa.DataType) -> str:
    """Return the kind of a type: its name in Spark, without the precision of decimals."""
    return t.spark_name(arrow).partition("(")[0]


def random_table(rng: Random, name: str, prefix: str) -> FuzzTable:
    """Return a table with 3 to 9 sortable columns ``<prefix>0``, ``<prefix>1``, ... One table in ten has no rows."""
    rows = 0 if rng.random() < 0.1 else rng.choice((1, 3, 20, 60, 200))
    form = _random_format(rng)
    sortable = [kind for kind in TYPES_OF[form] if not pa.types.is_map(kind)]
    # The first column of every table is an int, so that joins between tables have matches.
    types = [pa.int32(), *rng.sample(sortable, rng.randint(2, 8))]
    columns = [_column(rng, kind, rows, form) for kind in types]
    names = [f"{prefix}{index}" for index in range(len(types))]
    return FuzzTable(name, pa.table(columns, names=names), rng.choice((1, 1, 3)) if rows else 1, form)


ID, GROUP = "id", "grp"
"""Columns of ``wide_table``: a unique number per row, and one of four group numbers."""
_MORE = (
    *(pa.bool_(), pa.int32(), pa.int32(), pa.int64(), pa.string(), pa.string(), pa.float64(), pa.date32()),
    *(pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(9, 2), pa.list_(pa.int32())),
)


def wide_table(rng: Random, name: str) -> FuzzTable:
    """Return a table with columns of every type of its format, a row number, and a group number."""
    rows = rng.choice((1, 8, 30, 60, 60))
    form = _random_format(rng)
    types = [*TYPES_OF[form], *(kind for kind in _MORE if kind in TYPES_OF[form])]
    columns = {
        ID: pa.array(range(rows), pa.int32()),
        GROUP: pa.array((rng.randint(1, 4) for _ in range(rows)), pa.int32()),
        **{f"c{index}": _column(rng, kind, rows, form) for index, kind in enumerate(types)},
    }
    return FuzzTable(name, pa.table(columns), rng.choice((1, 3)) if rows > 1 else 1, form)


def _random_format(rng: Random) -> Format:
    return rng.choice(("parquet", "parquet", *FORMATS))


def _column(rng: Random, kind: pa.DataType, rows: int, form: Format) -> pa.Array:
    pool = list(_POOLS[kind])
    if form == "orc":  # the engine falls back to Spark for fractions of a second before 1970 in ORC files
        pool = [value for value in pool if not isinstance(value, datetime) or value.year >= 1970]
    style = rng.random()
    if style < 0.2:
        pool = [rng.choice(pool)]
    elif style < 0.5:
        pool = pool[: rng.randint(1, len(pool))]
    elif style < 0.8:
        pool += [_random_value(rng, kind) for _ in range(rows)]
    nulls = rng.choice((0.0, 0.0, 0.1, 0.5, 1.0 if rng.random() < 0.2 else 0.3))
    values = [None if rng.random() < nulls else rng.choice(pool) for _ in range(rows)]
    if pa.types.is_decimal(kind):
        values = [None if value is None else Decimal(value) for value in values]
    # If an ORC batch has only zeros, Spark reads all of them with the sign of the first one (docs/trust.md, "Known
    # exceptions").
    if form == "orc" and pa.types.is_floating(kind) and not any(values):
        values = [None if value is None else 0.0 for value in values]
    return pa.array(values, kind)


def _random_value(rng: Random, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_integer(kind):
        return rng.randint(-100, 100)
    if pa.types.is_floating(kind):
        return rng.randint(-4000, 4000) / 4
    if pa.types.is_decimal(kind):
        return str(Decimal(rng.randint(-10000, 10000)).scaleb(-kind.scale))
    if kind == pa.string():
        return "".join(rng.choice("abcAB 12é") for _ in range(rng.randint(0, 6)))
    if kind == pa.binary():
        return bytes(rng.choice((0, 97, 255)) for _ in range(rng.randint(0, 3)))
    if pa.types.is_list(kind):
        parts = (_random_value(rng, kind.value_type) for _ in range(rng.randint(0, 3)))
        return [None if rng.random() < 0.2 else part for part in parts]
    if pa.types.is_map(kind):
        return [(key, rng.randint(-9, 9)) for key in rng.sample(("a", "b", "10", ""), rng.randint(0, 3))]
    if pa.types.is_struct(kind):
        return {field.name: _random_value(rng, field.type) for field in kind}
    if kind == pa.date32():
        return date.fromordinal(rng.randint(date(1990, 1, 1).toordinal(), date(2030, 1, 1).toordinal()))
    return datetime(1970, 1, 1, tzinfo=timezone.utc if kind.tz else None) + timedelta(
        seconds=rng.randint(0, 2_000_000_000)
    )
