"""Functions of whole arrays."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from kquery_spark.types.units import DAY_MICROS
from tests.functions import values as v
from tests.functions.cases.strings import c
from tests.functions.parity import Arg, Case, Lit, integer, text

LONGS = Arg(
    pa.list_(t.LONG),
    (
        [],
        [1],
        [3, 1, 2, 3, 1],
        [None],
        [5, None, 5, None],
        [None, 2],
        [2, 1],
        list(range(9, 0, -1)),
        [2**63 - 1, -(2**63)],
    ),
)
OTHERS = Arg(pa.list_(t.LONG), ([], [3, 4, 3], [None, 4], [5], [1, 2, None]))
STRINGS = Arg(
    pa.list_(t.STRING), ([], ["b", "a", "b"], ["a", None, "é", ""], [None, None], ["z", "Z", "ä", "a", "ab"])
)
DOUBLES = Arg(
    pa.list_(t.DOUBLE),
    (
        [],
        [0.0, -0.0],
        [-0.0, 0.0],
        [1.5, None, float("nan"), -2.0, float("inf"), float("-inf")],
        [float("nan")],
        [None],
    ),
)
DATES = Arg(pa.list_(t.DATE), ([], [3, 1, None, 2], [5, 5, -100000]))
DECIMALS = Arg(
    pa.list_(t.decimal(5, 2)), ([], [v.Decimal("1.50"), v.Decimal("-3.25"), None, v.Decimal("1.50")])
)
BOOLS = Arg(pa.list_(t.BOOL), ([], [True, False, None, True], [False]))
NESTED = Arg(pa.list_(pa.list_(t.LONG)), ([], [[1, 2], [], [3]], [[1], None], [[None], [4, None]], [[]]))
NESTED_STRINGS = Arg(pa.list_(pa.list_(t.STRING)), ([["a", None], ["b"]], [[]], [None]))
MAPS = Arg(pa.map_(t.STRING, t.INT), ([], [("a", 1)], [("a", None), ("b", 2)], [("é", 5), ("", 0)]))
PLACES = Arg(t.INT, (1, 2, -1, -2, -9, 5, 0, 2**31 - 1))
LENGTHS = Arg(t.INT, (0, 1, 2, 100, -1, 2**31 - 1))
WHOLE = (LONGS, STRINGS, DATES, DECIMALS, BOOLS)
MORE_DOUBLES = Arg(
    pa.list_(t.DOUBLE), ([], [1.5, None, float("nan"), 1.5, float("nan")], [2.0, float("inf")], [None])
)
ZEROS = Arg(pa.list_(t.DOUBLE), ([-0.0, 0.0, 1.0], [float("nan"), None, 0.0], []))
RECORD = pa.struct([("x", t.LONG), ("d", t.DOUBLE)])
RECORDS = Arg(
    pa.list_(RECORD),
    (
        [],
        [
            {"x": 1, "d": 2.0},
            {"x": 1, "d": 2.0},
            None,
            {"x": None, "d": float("nan")},
            {"x": None, "d": float("nan")},
        ],
        [{"x": 3, "d": -0.0}, {"x": 3, "d": 0.0}],
    ),
)
SOME_RECORDS = Arg(RECORDS.dtype, RECORDS.values[:2])
SPOTS = Arg(t.INT, (1, 2, 3, 9, -1, -2, -4, -9, 0))
SOME = Arg(t.LONG, (7, 5, -1))


def zipped(*arrays: Arg) -> Case:
    """ARRAYS_ZIP; the engine's call has the names of the fields, too."""

    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        return Call.of(
            "arrays_zip", *(part for i, a in enumerate(args) for part in (Literal(str(i), t.STRING), a))
        )

    calls = ", ".join(f"coalesce({{{i}}}, {{{i}}})" for i in range(len(arrays)))
    return Case("arrays_zip", f"arrays_zip({calls})", arrays, build=build)


DESCENDING = Lit(False, t.BOOL, "false")
ASCENDING = Lit(True, t.BOOL, "true")
DAY = DAY_MICROS
BOUNDS = Arg(t.INT, (0, 1, 5, -3))
STEPS = Arg(t.INT, (1, -1, 2, 3, -2, 0))
DAYS = Arg(t.DATE, (0, 10, -5, 18262))
MONTH_DAYS = Arg(
    t.DATE, (18262, 18292, 18293, 18321, 18322, 18628, 19000, -1)
)  # 2020-01-01, 2020-01-31, 2020-02-01, ...
TIMES = Arg(t.timestamp("UTC"), (1585353600000000, 1585440000000000, 1585526400000001, 1585526399999999))
CASES: list[Case] = [
    *(c("sort_array", a) for a in (*WHOLE, DOUBLES)), *(c("sort_array", a, DESCENDING) for a in (*WHOLE, DOUBLES)), c("sort_array", LONGS, ASCENDING), c("sort_array", LONGS, Lit(None, t.BOOL, "cast(null as boolean)")),
    *(c(name, a) for name in ("array_max", "array_min") for a in (*WHOLE, DOUBLES)),
    *(c("array_distinct", a) for a in WHOLE), *(c(name, LONGS, OTHERS) for name in ("array_union", "array_intersect", "array_except", "arrays_overlap")),
    *(c(name, STRINGS, STRINGS) for name in ("array_union", "array_intersect", "array_except", "arrays_overlap")), c("array_union", BOOLS, BOOLS),
    c("array_position", LONGS, Arg(t.LONG, (1, 2, 3, 5, -7))), c("array_position", STRINGS, v.WORDS), c("array_position", STRINGS, text("a")),
    c("array_remove", LONGS, Arg(t.LONG, (1, 2, 3, 5, -7))), c("array_remove", STRINGS, text("a")), c("array_remove", DATES, Arg(t.DATE, (5, 1))),
    c("slice", LONGS, PLACES, LENGTHS), c("slice", STRINGS, integer(2), integer(2)), c("slice", NESTED, integer(-2), integer(1)),
    c("concat", LONGS, OTHERS), c("concat", STRINGS, STRINGS, STRINGS), c("concat", NESTED, NESTED), c("concat", BOOLS), c("concat", DECIMALS, DECIMALS),
    *(c("reverse", a) for a in (*WHOLE, DOUBLES, NESTED)),
    c("flatten", NESTED), c("flatten", NESTED_STRINGS),
    c("array_join", STRINGS, text(",")), c("array_join", STRINGS, v.WORDS), c("array_join", STRINGS, text("-"), text("NULL")), c("array_join", STRINGS, text(""), v.WORDS),
    c("array_repeat", v.STRINGS, Arg(t.INT, (0, 1, 3, -2))), c("array_repeat", v.INTS, integer(2)), c("array_repeat", LONGS, integer(2)), c("map_entries", MAPS),
    c("sequence", BOUNDS, BOUNDS), c("sequence", BOUNDS, BOUNDS, STEPS), c("sequence", Arg(t.LONG, (0, 7)), Arg(t.LONG, (3, -2))), c("sequence", Arg(t.SHORT, (0, 7)), Arg(t.SHORT, (3, -2))),
    c("sequence", DAYS, DAYS), c("sequence", DAYS, DAYS, Lit(7 * DAY, t.DAY_TIME, "interval 7 days"), sql="sequence({0}, {1}, {2})"),
    c("sequence", DAYS, Arg(t.DATE, (-100,)), Lit(-30 * DAY, t.DAY_TIME, "interval -30 days")),
    c("sort_nulls_last", LONGS, sql="array_sort({0})"), *(c("sort_nulls_last", a, sql="array_sort({0})") for a in (*WHOLE[1:], DOUBLES, NESTED, RECORDS)),
    *(c(name, a) for name in ("array_max", "array_min") for a in (MORE_DOUBLES, NESTED, RECORDS)), *(c("array_distinct", a) for a in (MORE_DOUBLES, NESTED, SOME_RECORDS)), c("sort_array", NESTED), c("sort_array", RECORDS, DESCENDING),
    *(c(name, a, a) for name in ("array_union", "array_intersect", "array_except", "arrays_overlap") for a in (MORE_DOUBLES, NESTED, SOME_RECORDS)),
    *(c(name, ZEROS, Arg(t.DOUBLE, (0.0, -0.0, float("nan"), 1.0))) for name in ("array_position", "array_remove", "array_contains")),
    *(c(name, NESTED, LONGS) for name in ("array_position", "array_remove", "array_contains")), c("array_contains", RECORDS, Arg(RECORD, ({"x": 3, "d": 0.0}, {"x": None, "d": float("nan")}))),
    c("array_insert", LONGS, SPOTS, SOME), c("array_insert", STRINGS, integer(2), v.WORDS), c("array_insert", NESTED, integer(-3), LONGS), c("array_insert", DOUBLES, SPOTS, Arg(t.DOUBLE, (-0.0,))),
    *(c(name, LONGS, SOME) for name in ("array_append", "array_prepend")), *(c(name, STRINGS, v.WORDS) for name in ("array_append", "array_prepend")), c("array_append", NESTED, LONGS),
    *(c("array_compact", a) for a in (LONGS, STRINGS, DOUBLES, NESTED, RECORDS, DECIMALS)),
    zipped(LONGS, OTHERS), zipped(LONGS, STRINGS, DOUBLES), zipped(NESTED, DATES), zipped(BOOLS),
    *(c("sequence_by_months", MONTH_DAYS, MONTH_DAYS, Lit(n, t.INT, f"interval '{n}' month"), sql="sequence({0}, {1}, {2})") for n in (1, 12, -3)),
    *(c("sequence", a, a, Lit(n * 3_600_000_000, t.DAY_TIME, f"interval '{n}' hour"), sql="sequence({0}, {1}, {2})") for a in (TIMES, Arg(t.TIMESTAMP_NTZ, TIMES.values)) for n in (6, -23)),
    c("sequence", TIMES, TIMES, Lit(3_600_000_000, t.DAY_TIME, "interval 1 hour"), sql="sequence({0}, {1}, {2})", tz="Europe/Berlin"),
]  # fmt: skip
