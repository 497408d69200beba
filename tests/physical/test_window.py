from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.expr import Column, Frame, FrameUnit, Literal, SortKey, WindowCall
from kquery_spark.expr.windows import UP_TO_PEERS, UP_TO_ROW, WHOLE_PARTITION
from kquery_spark.logical import LogicalPlan, Window, WindowGroupLimit
from kquery_spark.physical.windows import results
from kquery_spark.types import names as t
from tests.physical.harness import (
    CONFIGS,
    assert_like_spark,
    c,
    lit,
    named,
    register,
    rows_of,
    run,
    scan,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN, INF = float("nan"), float("inf")
D = Decimal
N = 24
ROWS = pa.table(
    {
        "id": pa.array(range(N), pa.int32()),
        "g": ["a", "b", None, "a", "a", "b", "c", "a"] * 3,
        "o": pa.array([3, 1, None, 3, -2, 1, 5, None, 2, 2, 9, 3] * 2, pa.int32()),
        "f": [0.5, NAN, None, -1.5, INF, 0.5, -0.0, 0.0, 2.5, NAN, -INF, None] * 2,
        "d": pa.array([D("1.00"), D("2.50"), None, D("1.50")] * 6, pa.decimal128(9, 2)),
        "w": pa.array([D(10) ** 25, D("2.50"), None, D("-1.50")] * 6, pa.decimal128(38, 2)),
        "s": ["x", None, "é", "", "z", "zz"] * 4,
        "b": [True, None, False] * 8,
        "y": pa.array([dt.date(2020, 1, 1), None, dt.date(2020, 1, 4), dt.date(2020, 3, 1)] * 6),
        "ts": pa.array([0, None, 3_600_000_000, 86_400_000_000, 5, -7] * 4, pa.timestamp("us", "UTC")),
        "x": [1.25, 0.1, 1e15, -3.0, None, NAN, 7.0, 0.3] * 3,
    }
)


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession) -> None:
    register(spark, win=ROWS, win0=ROWS.slice(0, 0))


def window(child: LogicalPlan, calls: list[WindowCall], partition: list[str], order: list[SortKey]) -> Window:
    return Window(
        child,
        tuple(named(e, f"w{i}") for i, e in enumerate(calls)),
        tuple(c(child, p) for p in partition),
        tuple(order),
    )


def rows(low: int | None, high: int | None) -> Frame:
    return Frame(FrameUnit.ROWS, *(None if b is None else lit(b, t.INT) for b in (low, high)))


def values(low: Literal | None, high: Literal | None) -> Frame:
    return Frame(FrameUnit.RANGE, low, high)


def check(spark: SparkSession, plan: Window, strings: list[str], over: str, name: str = "win") -> None:
    shown = ", ".join(f"{text} OVER ({over})" if " OVER " not in text else text for text in strings)
    assert_like_spark(spark, f"SELECT *, {shown} FROM {name}", plan, configs=CONFIGS[:2])


@pytest.mark.parametrize("name,table", [("win", ROWS), ("win0", ROWS.slice(0, 0))])
@pytest.mark.parametrize("partition", [[], ["g"], ["g", "b"]])
def test_ranking(name: str, table: pa.Table, partition: list[str], spark: SparkSession) -> None:
    child = scan(table)
    calls = [WindowCall.of(f) for f in ("rank", "dense_rank", "percent_rank", "cume_dist")]
    by = f"PARTITION BY {', '.join(partition)} " if partition else ""
    for keys, text in (
        ([SortKey(c(child, "o"))], "o"),
        ([SortKey(c(child, "f"), False, False)], "f DESC"),
        (
            [SortKey(c(child, "s"), False, True), SortKey(c(child, "o"), True, False)],
            "s DESC NULLS FIRST, o NULLS LAST",
        ),
    ):
        strings = ["rank()", "dense_rank()", "percent_rank()", "cume_dist()"]
        check(spark, window(child, calls, partition, keys), strings, f"{by}ORDER BY {text}", name)
    numbered = [WindowCall.of("row_number"), *(WindowCall.of("ntile", lit(n, t.INT)) for n in (1, 2, 3, 100))]
    strings = ["row_number()", "ntile(1)", "ntile(2)", "ntile(3)", "ntile(100)"]
    check(
        spark,
        window(child, numbered, partition, [SortKey(c(child, "id"))]),
        strings,
        f"{by}ORDER BY id",
        name,
    )


def test_lag_and_lead(spark: SparkSession) -> None:
    child = scan(ROWS)
    calls, strings = [], []
    for function in ("lag", "lead"):
        for name in "odws":
            for by in (0, 1, 2, -1, 100):
                for nulls in (False, True):
                    calls.append(WindowCall.of(function, c(child, name), lit(by, t.INT), ignore_nulls=nulls))
                    strings.append(f"{function}({name}, {by}){' IGNORE NULLS' if nulls else ''}")
        calls.append(WindowCall.of(function, c(child, "o"), lit(3, t.INT), lit(-9, t.INT)))
        strings.append(f"{function}(o, 3, -9)")
        calls.append(WindowCall.of(function, c(child, "o"), lit(1, t.INT), c(child, "id")))
        strings.append(f"{function}(o, 1, id)")
    check(
        spark, window(child, calls, ["g"], [SortKey(c(child, "id"))]), strings, "PARTITION BY g ORDER BY id"
    )


FRAMES = [
    (None, 0),
    (None, None),
    (0, None),
    (-2, 1),
    (-3, -2),
    (1, 2),
    (0, 0),
    (None, -1),
    (2, None),
    (5, 2),
    (-100, 100),
]


def bound(value: int | None, upper: bool) -> str:
    if value is None:
        return "UNBOUNDED FOLLOWING" if upper else "UNBOUNDED PRECEDING"
    if value == 0:
        return "CURRENT ROW"
    return f"{abs(value)} {'FOLLOWING' if value > 0 else 'PRECEDING'}"


AGGREGATES = [
    *(("count", n) for n in "gx"), ("sum", "o"), ("sum", "d"), ("sum", "w"), ("sum", "x"), ("avg", "o"), ("avg", "d"),
    ("avg", "x"), *((f, n) for f in ("min", "max") for n in ["o", "f", "d", "w", "s", "b", "y", "ts"]),
    ("stddev_samp", "o"), ("var_pop", "o"), ("bool_and", "b"), ("bit_xor", "o"), ("count_if", "b"),
    ("first", "s"), ("last", "s"), ("collect_list", "o"),
]  # fmt: skip


@pytest.mark.parametrize("frame", [f for f in FRAMES if f != (5, 2)], ids=str)
def test_aggregates_and_values_over_rows(frame: tuple[int | None, int | None], spark: SparkSession) -> None:
    child = scan(ROWS)
    over = rows(*frame)
    calls = [WindowCall.of("count", frame=over)] + [
        WindowCall.of(f, c(child, n), frame=over) for f, n in AGGREGATES
    ]
    strings = ["count(*)", *(f"{f}({n})" for f, n in AGGREGATES)]
    for nulls, end in ((False, ""), (True, " IGNORE NULLS")):
        for n in "os":
            calls += [
                WindowCall.of(f"{f}_value", c(child, n), frame=over, ignore_nulls=nulls)
                for f in ("first", "last")
            ]
            calls.append(
                WindowCall.of("nth_value", c(child, n), lit(2, t.INT), frame=over, ignore_nulls=nulls)
            )
            strings += [f"first_value({n}){end}", f"last_value({n}){end}", f"nth_value({n}, 2){end}"]
    text = f"PARTITION BY g ORDER BY id ROWS BETWEEN {bound(frame[0], False)} AND {bound(frame[1], True)}"
    check(spark, window(child, calls, ["g"], [SortKey(c(child, "id"))]), strings, text)


def test_a_frame_that_ends_before_it_starts_is_empty() -> None:
    child = scan(ROWS)
    calls = [WindowCall.of("count", frame=rows(5, 2)), WindowCall.of("max", c(child, "o"), frame=rows(5, 2))]
    assert {r[-2:] for r in rows_of(run(window(child, calls, ["g"], [SortKey(c(child, "id"))])))} == {
        (0, None)
    }


RANGES: list[tuple[str, list[tuple[Literal | None, Literal | None, str]]]] = [
    ("o", [(lit(-1, t.INT), lit(1, t.INT), "1 PRECEDING AND 1 FOLLOWING"), (None, lit(2, t.INT), "UNBOUNDED PRECEDING AND 2 FOLLOWING"),
           (lit(1, t.INT), None, "1 FOLLOWING AND UNBOUNDED FOLLOWING"), (lit(-3, t.INT), lit(-2, t.INT), "3 PRECEDING AND 2 PRECEDING"),
           (lit(0, t.INT), lit(2, t.INT), "CURRENT ROW AND 2 FOLLOWING"), (None, lit(0, t.INT), "UNBOUNDED PRECEDING AND CURRENT ROW")]),
    ("f", [(lit(-0.5, t.DOUBLE), lit(2.0, t.DOUBLE), "0.5D PRECEDING AND 2.0D FOLLOWING"), (None, lit(-1.0, t.DOUBLE), "UNBOUNDED PRECEDING AND 1.0D PRECEDING")]),
    ("d", [(lit(D("-0.50"), pa.decimal128(9, 2)), lit(D("1.00"), pa.decimal128(9, 2)), "0.50BD PRECEDING AND 1.00BD FOLLOWING")]),
    ("y", [(lit(-3, t.INT), lit(0, t.INT), "INTERVAL '3' DAY PRECEDING AND CURRENT ROW"), (lit(-60, t.INT), lit(-1, t.INT), "INTERVAL '60' DAY PRECEDING AND INTERVAL '1' DAY PRECEDING")]),
    ("ts", [(lit(-3_600_000_000, t.DAY_TIME), lit(5, t.DAY_TIME), "INTERVAL '01:00:00' HOUR TO SECOND PRECEDING AND INTERVAL '00:00:00.000005' HOUR TO SECOND FOLLOWING"),
            (lit(-86_400_000_000, t.DAY_TIME), None, "INTERVAL '1' DAY PRECEDING AND UNBOUNDED FOLLOWING")]),
]  # fmt: skip


@pytest.mark.parametrize("name,frames", RANGES, ids=[n for n, _ in RANGES])
@pytest.mark.parametrize(
    "direction", ["ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS LAST", "DESC NULLS FIRST"]
)
def test_ranges_of_values(
    name: str, frames: list[tuple[Literal | None, Literal | None, str]], direction: str, spark: SparkSession
) -> None:
    child = scan(ROWS)
    keys = [SortKey(c(child, name), direction.startswith("ASC"), direction.endswith("FIRST"))]
    functions: list[tuple[str, str]] = [
        ("count", "id"),
        ("sum", "id"),
        ("min", "id"),
        ("max", "s"),
        ("avg", "d"),
    ]
    calls, strings = [], []
    for low, high, text in frames:
        for f, n in functions:
            calls.append(WindowCall.of(f, c(child, n), frame=values(low, high)))
            strings.append(f"{f}({n}) OVER (PARTITION BY g ORDER BY {name} {direction} RANGE BETWEEN {text})")
    check(spark, window(child, calls, ["g"], keys), strings, "")


def test_defaults_of_the_window(spark: SparkSession) -> None:
    child = scan(ROWS)
    ordered = [WindowCall.of(f, c(child, "id"), frame=UP_TO_PEERS) for f in ("sum", "count", "max")]
    check(
        spark,
        window(child, ordered, ["g"], [SortKey(c(child, "o"))]),
        ["sum(id)", "count(id)", "max(id)"],
        "PARTITION BY g ORDER BY o",
    )
    calls = [
        WindowCall.of(f, c(child, "id"), frame=WHOLE_PARTITION) for f in ("sum", "count", "max", "stddev")
    ]
    strings = ["sum(id)", "count(id)", "max(id)", "stddev(id)"]
    check(spark, window(child, calls, ["b"], []), strings, "PARTITION BY b")
    check(spark, window(child, calls, [], []), strings, "")


def test_a_running_sum_is_not_disturbed_by_other_partitions() -> None:
    table = pa.table(
        {
            "g": ["a"] * 3 + ["b"] * 3 + ["c"] * 3,
            "i": range(9),
            "x": [1e300, INF, NAN, 0.1, 0.2, 0.3, 1.0, -1.0, 5.0],
        }
    )
    child = scan(table)
    plan = window(
        child, [WindowCall.of("sum", c(child, "x"), frame=rows(None, 0))], ["g"], [SortKey(c(child, "i"))]
    )
    sums = [r[-1] for r in sorted(rows_of(run(plan)), key=lambda r: r[1])]
    assert sums[:3] == [1e300, INF, "NaN"]
    assert sums[3:] == [0.1, pytest.approx(0.3), pytest.approx(0.6), 1.0, 0.0, 5.0]


def test_large_running_and_sliding_windows_agree_with_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    import numpy as np

    rng = np.random.default_rng(2)
    n = 60_000
    table = pa.table(
        {
            "g": rng.integers(0, 7, n),
            "i": rng.permutation(n),
            "v": rng.integers(-(2**40), 2**40, n),
            "x": rng.normal(size=n),
        }
    )
    child = scan(table, rows_each=9000)
    calls: list[WindowCall] = [
        WindowCall.of("sum", c(child, "v"), frame=rows(None, 0)),
        WindowCall.of("min", c(child, "v"), frame=rows(-700, 300)),
        WindowCall.of("avg", c(child, "x"), frame=rows(None, 0)),
        WindowCall.of("var_pop", c(child, "x"), frame=rows(-50, 50)),
    ]
    plan = window(child, calls, ["g"], [SortKey(c(child, "i"))])
    session = duckdb.connect()
    session.register("big", table)
    want = session.execute(
        "SELECT *, sum(v) OVER p, min(v) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 700 PRECEDING AND 300 FOLLOWING), "
        "avg(x) OVER p, var_pop(x) OVER (PARTITION BY g ORDER BY i ROWS BETWEEN 50 PRECEDING AND 50 FOLLOWING) "
        "FROM big WINDOW p AS (PARTITION BY g ORDER BY i ROWS UNBOUNDED PRECEDING)"
    ).to_arrow_table()
    for config in CONFIGS[:2]:
        actual = run(plan, config).sort_by("i")
        expected = want.sort_by("i")
        for k in range(4, 8):
            a = np.array([float(v) for v in actual.column(k).to_pylist()])
            b = np.array([float(v) for v in expected.column(k).to_pylist()])
            assert np.allclose(a, b, rtol=1e-8, atol=1e-9), k


@pytest.mark.parametrize("function", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("partition", [[], ["g"]])
def test_limit_by_rank(function: str, partition: list[str], spark: SparkSession) -> None:
    child = scan(ROWS)
    keys = [SortKey(c(child, "o"), False, False)]
    if function == "row_number":
        keys.append(SortKey(c(child, "id")))
    plan = WindowGroupLimit(child, tuple(c(child, p) for p in partition), tuple(keys), function, 2)
    by = "PARTITION BY g " if partition else ""
    order = "o DESC, id" if function == "row_number" else "o DESC"
    sql = f"SELECT * EXCEPT (r) FROM (SELECT *, {function}() OVER ({by}ORDER BY {order}) AS r FROM win) WHERE r <= 2"
    assert_like_spark(spark, sql, plan)


def test_what_is_not_a_window_is_refused() -> None:
    child = scan(ROWS)
    with pytest.raises(PlanError, match="needs an ORDER BY"):
        window(child, [WindowCall.of("rank")], ["g"], [])
    with pytest.raises(PlanError, match="exactly one ORDER BY"):
        window(child, [WindowCall.of("count", frame=values(lit(-1, t.INT), None))], ["g"], [])
    with pytest.raises(ExecutionError, match="ntile"):
        run(window(child, [WindowCall.of("ntile", lit(0, t.INT))], [], [SortKey(c(child, "id"))]))


def test_a_range_bound_past_the_type_falls_back_to_spark() -> None:
    child = scan(pa.table({"o": pa.array([2**31 - 1, 1], pa.int32())}))
    calls = [WindowCall.of("count", frame=values(lit(-1, t.INT), lit(1, t.INT)))]
    with pytest.raises(Unsupported, match="past the end of int"):
        run(window(child, calls, [], [SortKey(Column("o", t.INT))]))


def test_averages_of_bigint_are_those_of_doubles(spark: SparkSession) -> None:
    values = [2**62 + 1, -(2**62), None, 7, 8, 2**63 - 1, 2**63 - 1]
    table = pa.table({"id": range(7), "g": [1, 1, 1, 2, 2, 3, 3], "l": pa.array(values, pa.int64())})
    register(spark, averaged=table)
    child = scan(table)
    for text, frame in (
        ("", WHOLE_PARTITION),
        (" ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", Frame(FrameUnit.ROWS, lit(-1, t.INT))),
        (" ROWS UNBOUNDED PRECEDING", UP_TO_ROW),
    ):
        plan = window(
            child, [WindowCall.of("avg", c(child, "l"), frame=frame)], ["g"], [SortKey(c(child, "id"))]
        )
        over = f"PARTITION BY g ORDER BY id{text}" if text else "PARTITION BY g"
        check(spark, plan, ["avg(l)"], over, "averaged")


def test_extremes_of_structs_are_of_the_frame(spark: SparkSession) -> None:
    structs = [{"b": -0.0}, {"b": 0.0}, {"b": -0.0}, None]
    table = pa.table({"id": range(4), "st": pa.array(structs, pa.struct([("b", pa.float64())]))})
    register(spark, zeros=table)
    child = scan(table)
    calls, strings = [], []
    for low, high in (0, 0), (-1, 0), (-1, 1):
        for name in ("min", "max"):
            frame = Frame(FrameUnit.ROWS, lit(low, t.INT), lit(high, t.INT))
            calls.append(WindowCall.of(name, c(child, "st"), frame=frame))
            ends = [f"{-x} PRECEDING" if x < 0 else f"{x} FOLLOWING" for x in (low, high)]
            strings.append(f"{name}(st) OVER (ORDER BY id ROWS BETWEEN {ends[0]} AND {ends[1]})")
    plan = window(child, calls, [], [SortKey(c(child, "id"))])
    shown = ", ".join(f"CAST({x} AS STRING)" for x in strings)
    expected = [tuple(row)[1:] for row in spark.sql(f"SELECT id, {shown} FROM zeros ORDER BY id").collect()]
    found = [
        tuple(None if v is None else f"{{{v['b']}}}" for v in list(row.values())[2:])
        for row in sorted(run(plan).to_pylist(), key=lambda row: row["id"])
    ]
    assert found == expected


PIECES = [
    ("collect_list", "s", None), ("max", "s", None), ("min", "s", None), ("min", "f", None), ("max_by", "s", "o"),
    ("max_by", "id", "s"), ("min_by", "s", "f"), ("max_by", "w", "s"), ("first_value", "s", None),
    ("last_ignore_nulls", "s", None),
]  # fmt: skip


@pytest.mark.parametrize("frame", [(None, None), (None, 0), (-3, 1), (2, None)])
def test_results_that_are_built_in_pieces(
    frame: tuple[int | None, int | None], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_MAX_RESULT_BYTES", 24)
    child = scan(ROWS)
    calls, strings = [], []
    low, high = (bound(b, upper) for b, upper in zip(frame, (False, True), strict=True))
    over = f"PARTITION BY g ORDER BY id ROWS BETWEEN {low} AND {high}"
    for function, *names in PIECES:
        args = [c(child, name) for name in names if name]
        calls.append(WindowCall.of(function, *args, frame=rows(*frame)))
        shown = "last(s, true)" if "ignore" in function else f"{function}({', '.join(filter(None, names))})"
        strings.append(f"{shown} OVER ({over})")
    calls.append(WindowCall.of("listagg", c(child, "s"), lit("; ", t.STRING), frame=rows(*frame)))
    strings.append(f"listagg(s, '; ') OVER ({over})")
    calls.append(WindowCall.of("lag", c(child, "s"), lit(2, t.INT), lit("default", t.STRING)))
    strings.append("lag(s, 2, 'default') OVER (PARTITION BY g ORDER BY id)")
    calls.append(WindowCall.of("lead", c(child, "s"), lit(1, t.INT), c(child, "g")))
    strings.append("lead(s, 1, g) OVER (PARTITION BY g ORDER BY id)")
    check(spark, window(child, calls, ["g"], [SortKey(c(child, "id"))]), strings, "")
