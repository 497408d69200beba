"""Hashes, nested values and Catalyst's helpers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.expr import Case as Condition
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.strings import FLAT, c
from tests.functions.parity import Arg, Case, integer, text

CASES: list[Case] = []
for flat in (*FLAT, v.SHORTS, v.DEC38_38, v.DEC18):
    CASES += [c("hash", flat), c("xxhash64", flat)]
LONG_STRINGS = Arg(
    t.STRING,
    tuple("abcdefghijklmnopqrstuvwxyzé" * 5)[:0]
    + tuple(("abcdefghijklmnopqrstuvwxyzé0123456789" * 4)[:n] for n in range(120)),
)
CASES += [
    c("hash", LONG_STRINGS),
    c("xxhash64", LONG_STRINGS),
    c("hash", v.INTS, v.STRINGS, v.DOUBLES),
    c("xxhash64", v.LONGS, v.STRINGS, v.DEC),
]
CASES += [
    c("md5", v.BINARIES),
    c("sha1", v.BINARIES),
    c("crc32", v.BINARIES),
    c("sha2", v.BINARIES, Arg(t.INT, (0, 224, 256, 384, 512, 1, -1))),
    c("sha2", v.BINARIES, integer(256)),
]

POINT = pa.struct([("x", t.INT), ("name", t.STRING), ("d", t.decimal(10, 2))])
STRUCTS = Arg(
    POINT,
    (
        {"x": 1, "name": "a", "d": Decimal("1.50")},
        {"x": None, "name": "", "d": None},
        {"x": -3, "name": None, "d": Decimal("-99999999.99")},
    ),
)
ARRAYS = Arg(pa.list_(t.LONG), ([], [1], [1, 2, 3], [None], [5, None, 5], [None, 2], list(range(20))))
TEXT_ARRAYS = Arg(pa.list_(t.STRING), ([], ["a"], ["a", None, "é"], [None, None]))
DOUBLE_ARRAYS = Arg(pa.list_(t.DOUBLE), ([], [0.0], [-0.0, float("nan")], [1.5, None]))
MAPS = Arg(pa.map_(t.STRING, t.INT), ([], [("a", 1)], [("a", None), ("b", 2)], [("é", 5), ("", 0)]))
PLACES = Arg(t.INT, (0, 1, 2, -1, -3, 5, 2**31 - 1))


LISTED = Arg(pa.list_(POINT), ([], [STRUCTS.values[0], None, STRUCTS.values[1]], [None], [STRUCTS.values[2]]))


def _field(place: int, function: str = "get_struct_field") -> Any:
    return lambda args, mode, tz: Call.of(function, args[0], Literal(place, t.INT), mode=mode, tz=tz)


CASES += [
    c("get_struct_field", STRUCTS, sql=f"{{0}}.{name}", build=_field(i), check_nullable=True)
    for i, name in enumerate(("x", "name", "d"))
]
CASES += [
    c("get_array_struct_fields", LISTED, sql=f"{{0}}.{name}", build=_field(i, "get_array_struct_fields"))
    for i, name in enumerate(("x", "name", "d"))
]
CASES += [
    c("named_struct", text("a"), v.INTS, text("b"), v.STRINGS), c("named_struct", text("d"), v.DEC), c("array", v.INTS, v.INTS), c("array", v.STRINGS), c("array", v.DEC, v.DEC),
    *(c("get_array_item", a, PLACES, sql="{0}[{1}]", ansi=ansi) for a in (ARRAYS, TEXT_ARRAYS) for ansi in (True, False)),
    c("get_array_item", ARRAYS, PLACES, sql="get({0}, {1})", mode=EvalMode.TRY), c("get_map_value", MAPS, v.WORDS, sql="{0}[{1}]"),
    *(c("element_at", a, PLACES, ansi=ansi) for a in (ARRAYS, TEXT_ARRAYS) for ansi in (True, False)), c("element_at", ARRAYS, PLACES, sql="try_element_at({0}, {1})", mode=EvalMode.TRY),
    c("element_at", MAPS, v.WORDS), c("element_at", MAPS, text("a")), c("size", ARRAYS), c("size", MAPS), c("size", TEXT_ARRAYS, sql="cardinality({0})"),
    c("array_contains", ARRAYS, v.LONGS), c("array_contains", TEXT_ARRAYS, v.WORDS), c("array_contains", DOUBLE_ARRAYS, v.SHORT_DOUBLES), c("array_contains", TEXT_ARRAYS, text("é")),
    c("map_keys", MAPS), c("map_values", MAPS),
    *(c(name, a, a) for name in ("hash", "xxhash64") for a in (STRUCTS, ARRAYS, TEXT_ARRAYS, DOUBLE_ARRAYS, LISTED)),
    *(c(name, *[a] * n) for name, n in (("greatest", 2), ("least", 3)) for a in (STRUCTS, ARRAYS, TEXT_ARRAYS, DOUBLE_ARRAYS)),
]  # fmt: skip


def _unscaled(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
    return Call.of("unscaled_value", args[0])


def _round_trip(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
    return Call.of("make_decimal", Call.of("unscaled_value", args[0]), mode=mode, tz=tz, dtype=args[0].dtype)


def _wrapped(name: str) -> Any:
    return lambda args, mode, tz: Call.of(name, args[0])


CASES += [
    Case("precise_timestamp", "unix_micros({0})", (v.TIMESTAMPS,), lambda args, mode, tz: Call.of("precise_timestamp", args[0])),
]  # fmt: skip

# Catalyst's helpers have no SQL text: their definitions stand in for Spark's side
CASES += [
    Case("at_most_one_row", "{0} <= 1 OR {0} IS NULL", (Arg(t.LONG, (0, 1)),), _wrapped("at_most_one_row"), check_nullable=False),
    Case("unscaled_value", "cast({0} * 1000 as bigint)", (v.DEC12,), _unscaled, check_nullable=False), Case("make_decimal", "{0}", (v.DEC12,), _round_trip),
    Case("known_not_null", "{0}", (v.INTS,), _wrapped("known_not_null"), check_nullable=False), Case("known_normalized", "{0}", (v.DOUBLES,), _wrapped("known_normalized")),
    Case("normalize_nan_and_zero", "{0} + 0.0D", (v.DOUBLES,), _wrapped("normalize_nan_and_zero")),
]  # fmt: skip


def _raised(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
    raised = Call.of("raise_error", Literal("x", t.STRING), dtype=t.INT)
    return Condition(((Call.of("gt", args[0], Literal(5, t.INT)), raised),), args[0])


RAISED = "CASE WHEN {0} > 5 THEN CAST(raise_error('x') AS INT) ELSE {0} END"
CASES.append(Case("raise_error", RAISED, (v.INTS,), _raised))
