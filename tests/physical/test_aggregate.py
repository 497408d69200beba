from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kquery_spark as kq
from kquery_spark.expr import AggregateCall, Cast, Expr
from kquery_spark.logical import Aggregate, LogicalPlan
from kquery_spark.physical.operators import AggregateExec, Phase
from kquery_spark.types import names as t
from tests.physical.harness import (
    CONFIGS,
    assert_like_spark,
    assert_same_rows,
    c,
    call,
    execute,
    lit,
    named,
    read,
    register,
    rows_of,
    run,
    scan,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN, INF = float("nan"), float("inf")
D = Decimal
MIXED = pa.table(
    {
        "g": ["a", "b", None, "a", "b", None, "c", "a", "d", "a", "b", ""],
        "i": pa.array([1, 2, None, 4, -5, 6, None, 8, 2**31 - 1, -(2**31), 2, 0], pa.int32()),
        "l": pa.array([1, None, 3, 4, 5, -6, None, 2**62, 9, 2**62 - 5, 0, 0], pa.int64()),
        "f": pa.array([0.0, -0.0, NAN, NAN, INF, -INF, None, 1.5, 1.5, None, 0.1, 0.2], pa.float64()),
        "r": pa.array([0.5, NAN, 1.25, None, 3.0, -0.0, None, 0.0, 2.5, 7.0, 1.0, 1.0], pa.float32()),
        "d": pa.array(
            [D("1.50"), None, D("-2.25"), D("99999.99"), D("0"), D("0.01")] * 2, pa.decimal128(7, 2)
        ),
        "w": pa.array([D(10) ** 20, None, D(-5), D("0.125"), D(10) ** 19, D(0)] * 2, pa.decimal128(30, 3)),
        "s": ["x", None, "é", "Z", "", "z", "x", "zz", "x", "é", None, "x"],
        "b": pa.array([True, None, False, True, False, None] * 2),
        "y": pa.array([dt.date(2020, 1, 1), None, dt.date(1960, 2, 29), dt.date(9999, 12, 31)] * 3),
        "ts": pa.array([0, None, -1, 1_600_000_000_123_456] * 3, pa.timestamp("us", "UTC")),
    }
)
EMPTY = MIXED.slice(0, 0)
NULLS = pa.table(
    {"g": ["a", "a", "b"], **{n: pa.nulls(3, MIXED.schema.field(n).type) for n in MIXED.schema.names[1:]}}
)
EACH = [
    *(("count", n, False) for n in "gilfdwsby"),
    *(("sum", n, False) for n in ["i", "f", "r", "d", "w"]),
    *(("avg", n, False) for n in ["i", "l", "f", "r", "d", "w"]),
    *(
        (f, n, False)
        for f in ("min", "max")
        for n in ["g", "i", "l", "f", "r", "d", "w", "s", "b", "y", "ts"]
    ),
    *((f, n, True) for f in ("count", "sum", "avg") for n in ["i", "f", "d"]),
    *(("count", n, True) for n in ["s", "b", "y", "w"]),
]


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession) -> None:
    register(spark, mixed=MIXED, empty=EMPTY, nulls=NULLS)


def aggregate(child: LogicalPlan, keys: list[str], *calls: Expr) -> Aggregate:
    return Aggregate(
        child,
        tuple(named(c(child, k), k) for k in keys),
        tuple(named(e, f"a{i}") for i, e in enumerate(calls)),
    )


def every(child: LogicalPlan, keys: list[str]) -> tuple[Aggregate, str]:
    calls: list[Expr] = [AggregateCall.of("count")]
    strings = ["count(*)"]
    for function, name, distinct in EACH:
        calls.append(AggregateCall.of(function, c(child, name), distinct=distinct))
        strings.append(f"{function}({'DISTINCT ' if distinct else ''}{name})")
    return aggregate(child, keys, *calls), ", ".join([*keys, *strings])


@pytest.mark.parametrize(
    "keys", [[], ["g"], ["s"], ["f"], ["r"], ["d"], ["w"], ["b"], ["y"], ["g", "b", "f"]]
)
def test_every_aggregate_by_every_kind_of_key(keys: list[str], spark: SparkSession) -> None:
    plan, shown = every(scan(MIXED), keys)
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    assert_like_spark(spark, f"SELECT {shown} FROM mixed{by}", plan)


@pytest.mark.parametrize("name,table", [("empty", EMPTY), ("nulls", NULLS)])
@pytest.mark.parametrize("keys", [[], ["g"]])
def test_every_aggregate_of_nothing_and_of_nulls(
    name: str, table: pa.Table, keys: list[str], spark: SparkSession
) -> None:
    plan, shown = every(scan(table), keys)
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    assert_like_spark(spark, f"SELECT {shown} FROM {name}{by}", plan)


def test_min_max_sum_of_the_book() -> None:
    child = scan(pa.table({"k": ["a", "a", "b", "b"], "v": pa.array([1, 2, 4, 3], pa.int64())}), rows_each=1)
    plan = aggregate(child, ["k"], *(AggregateCall.of(f, c(child, "v")) for f in ("min", "max", "sum")))
    for config in CONFIGS:
        assert rows_of(run(plan, config)) == [("a", 1, 2, 3), ("b", 3, 4, 7)]


def test_largest_salary_by_state_has_a_group_for_null() -> None:
    table = pa.table({"state": ["CA", "CO", "CO", None], "salary": pa.array([12000, 10000, 11500, 11500])})
    child = scan(table, rows_each=1)
    plan = aggregate(child, ["state"], AggregateCall.of("max", c(child, "salary")))
    for config in CONFIGS:
        want = pa.table({"s": ["CO", "CA", None], "m": [11500, 12000, 11500]})
        assert_same_rows(run(plan, config), want)


def test_no_keys_and_no_input_is_one_row() -> None:
    child = scan(EMPTY)
    plan = aggregate(child, [], AggregateCall.of("count"), AggregateCall.of("max", c(child, "i")))
    for config in CONFIGS:
        assert rows_of(run(plan, config)) == [(0, None)]


def test_nan_and_zero_are_one_group_each() -> None:
    child = scan(pa.table({"f": [0.0, -0.0, NAN, -NAN, None, 1.0]}), rows_each=1)
    plan = aggregate(child, ["f"], AggregateCall.of("count"))
    for config in CONFIGS:
        actual = run(plan, config)
        assert sorted(map(str, rows_of(actual))) == sorted(
            map(str, [(0.0, 2), ("NaN", 2), (None, 1), (1.0, 1)])
        )


def test_of_equal_zeros_the_first_is_the_extreme() -> None:
    child = scan(
        pa.table(
            {
                "k": [1, 1, 2, 2, 3, 4, 4, 5],
                "f": pa.array([-0.0, 0.0, 0.0, -0.0, -0.0, 5.0, -0.0, None], pa.float32()),
            }
        ),
        rows_each=8,
    )
    calls = [AggregateCall.of(f, c(child, "f")) for f in ("min", "max")]
    expected = [(1, -0.0, -0.0), (2, 0.0, 0.0), (3, -0.0, -0.0), (4, -0.0, 5.0), (5, None, None)]
    assert sorted(map(repr, rows_of(run(aggregate(child, ["k"], *calls), CONFIGS[0])))) == list(
        map(repr, expected)
    )
    assert repr(rows_of(run(aggregate(child, [], *calls), CONFIGS[0]))) == "[(-0.0, 5.0)]"


def test_keys_alone_are_distinct(spark: SparkSession) -> None:
    child = scan(MIXED)
    assert_like_spark(spark, "SELECT DISTINCT g, b FROM mixed", aggregate(child, ["g", "b"]))


def test_filter_clause_and_distinct_of_two_columns(spark: SparkSession) -> None:
    child = scan(MIXED)
    some = call("gt", c(child, "i"), lit(0, t.INT))
    plan = aggregate(
        child,
        ["g"],
        AggregateCall.of("count", condition=some),
        AggregateCall.of("sum", c(child, "d"), condition=some),
        AggregateCall.of("count", c(child, "s"), c(child, "b"), distinct=True),
        AggregateCall.of("count", c(child, "s"), distinct=True, condition=some),
        AggregateCall.of("sum", c(child, "i"), distinct=True),
    )
    assert_like_spark(
        spark,
        "SELECT g, count(*) FILTER (WHERE i > 0), sum(d) FILTER (WHERE i > 0), count(DISTINCT s, b), "
        "count(DISTINCT s) FILTER (WHERE i > 0), sum(DISTINCT i) FROM mixed GROUP BY g",
        plan,
    )


def test_a_filter_keeps_rows_from_arguments_that_raise(spark: SparkSession) -> None:
    child = scan(MIXED)
    some = call("not", call("eq", c(child, "i"), lit(0, t.INT)))
    share = call("divide", lit(1.0, t.DOUBLE), Cast(c(child, "i"), t.DOUBLE))
    number = Cast(c(child, "s"), t.INT)
    for keys, by in (["g"], " GROUP BY g"), ([], ""):
        plan = aggregate(
            child,
            keys,
            AggregateCall.of("max", share, condition=some),
            AggregateCall.of("max_by", c(child, "i"), share, condition=some),
            AggregateCall.of("sum", number, condition=call("eq", c(child, "s"), lit("7", t.STRING))),
        )
        shown = (
            "max(1D / i) FILTER (WHERE i <> 0), max_by(i, 1D / i) FILTER (WHERE i <> 0), "
            "sum(CAST(s AS INT)) FILTER (WHERE s = '7')"
        )
        assert_like_spark(spark, f"SELECT {''.join(f'{k}, ' for k in keys)}{shown} FROM mixed{by}", plan)


def test_a_bigint_sum_out_of_range_raises_sparks_error() -> None:
    from kquery_spark.errors import ExecutionError

    child = scan(pa.table({"l": pa.array([2**63 - 1, 1], pa.int64())}), rows_each=1)
    plan = aggregate(child, [], AggregateCall.of("sum", c(child, "l")))
    for config in CONFIGS:
        with pytest.raises(ExecutionError, match="ARITHMETIC_OVERFLOW"):
            run(plan, config)


def test_wide_key_ranges_and_many_groups_agree_with_python() -> None:
    import numpy as np

    rng = np.random.default_rng(7)
    keys = rng.integers(-(2**63), 2**63 - 1, 500)
    rows = rng.integers(0, 500, 20_000)
    values = rng.integers(-1000, 1000, 20_000)
    table = pa.table({"k": keys[rows], "j": keys[::-1][rows % 7], "v": values})
    child = scan(table, rows_each=3000)
    plan = aggregate(child, ["k", "j"], AggregateCall.of("sum", c(child, "v")))
    want: dict[tuple[int, int], int] = {}
    for k, j, v in zip(*(table[n].to_pylist() for n in ("k", "j", "v")), strict=True):
        want[k, j] = want.get((k, j), 0) + v
    for config in CONFIGS:
        assert {(k, j): s for k, j, s in rows_of(run(plan, config))} == want


@pytest.mark.parametrize("dtype", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_groups_of_whole_numbers_at_the_ends_of_their_type(dtype: pa.DataType) -> None:
    bits = dtype.bit_width
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    for values in ([low, low, None, low + 1], [high, None, high - 1, high], [low, high, None], [None, None]):
        context = kq.ExecutionContext()
        context.register_arrow("t", pa.table({"k": pa.array(values * 3, dtype)}))
        found = context.sql("SELECT k, count(*) AS n FROM t GROUP BY k").collect()
        assert {r["k"]: r["n"] for r in found} == {v: 3 * values.count(v) for v in values}


def test_groups_that_come_late_have_their_own_first_row() -> None:
    keys = [0] * 20_000 + [7] + [0] * 500 + [3, 9, 7, 11, 13, 15, 17]
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"k": keys, "s": [f"k{k}" for k in keys]}))
    for names in ("k", "k, s"):
        found = context.sql(f"SELECT {names}, count(*) AS n FROM t GROUP BY {names}").collect()
        assert sorted((r["k"], r["n"]) for r in found) == sorted((k, keys.count(k)) for k in set(keys))
        assert all(r.get("s", f"k{r['k']}") == f"k{r['k']}" for r in found)


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize(
    "dtype", [pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.decimal128(9, 2)]
)
def test_extremes_of_many_rows_of_few_groups_agree_with_arrow(dtype: pa.DataType, ascending: bool) -> None:
    rng = np.random.default_rng(5)
    rows = 60_000
    keys = pa.array(
        rng.choice([3, 7, 8, 900], rows, p=[0.7, 0.2, 0.0999, 0.0001]).astype(np.int32),
        mask=rng.random(rows) < 0.01,
    )
    numbers = (
        np.sort(rng.integers(-(10**5), 10**5, rows)) if ascending else rng.integers(-(10**5), 10**5, rows)
    )
    plain = pa.array(numbers.astype(np.int32), pa.int32(), mask=rng.random(rows) < 0.1)
    # decimals by way of wider ones: a cast of integers asks for room for all of them
    values = plain.cast(pa.decimal128(12, 2)).cast(dtype) if pa.types.is_decimal(dtype) else plain.cast(dtype)
    table = pa.table({"k": keys, "v": values, "few": pa.array(rng.random(rows) < 0.5)})
    ctx = kq.ExecutionContext()
    ctx.register_arrow("t", table)
    query = "SELECT k, max(v) AS most, min(v) AS least, count(v) AS n, max(v) FILTER (WHERE few AND k > 8) AS late FROM t GROUP BY k"
    found = {r["k"]: r for r in ctx.sql(query).to_arrow().to_pylist()}
    for key in (None, 3, 7, 8, 900):
        mask = pc.is_null(keys) if key is None else pc.equal(keys, key)
        chosen = table.filter(mask)
        ends = pc.min_max(chosen["v"])
        late = pc.max(chosen.filter(chosen["few"])["v"]).as_py() if key == 900 else None
        assert (found[key]["most"], found[key]["least"]) == (ends["max"].as_py(), ends["min"].as_py())
        assert found[key]["n"] == pc.count(chosen["v"]).as_py()
        assert found[key]["late"] == late
    assert len(found) == 5


def test_nan_among_many_rows_is_the_largest_and_never_the_smallest() -> None:
    values = np.tile([5.0, 7.0], 20_000)
    values[[30_000, 30_001, 39_998]] = [np.nan, -np.inf, 1.0]
    table = pa.table({"k": np.tile([0, 1], 20_000), "v": values})
    ctx = kq.ExecutionContext()
    ctx.register_arrow("t", table)
    rows = (
        ctx.sql("SELECT k, max(v) AS most, min(v) AS least FROM t GROUP BY k ORDER BY k")
        .to_arrow()
        .to_pylist()
    )
    assert np.isnan(rows[0]["most"]) and rows[0]["least"] == 1.0
    assert rows[1] == {"k": 1, "most": 7.0, "least": -np.inf}


def test_what_grouping_hardly_reduces_is_left_while_other_batches_are_grouped() -> None:
    each = (
        300_000  # more than are put together; the batches of one projection of an Expand and those of another
    )
    many = [pa.table({"k": np.arange(i * each, (i + 1) * each), "g": np.full(each, 1)}) for i in range(5)]
    few = pa.table({"k": np.arange(each) % 10, "g": np.full(each, 2)})
    table = pa.concat_tables([many[0], many[1], few, many[2], few, many[3], few, many[4]])
    keys = (named(c(scan(table), "k"), "k"), named(c(scan(table), "g"), "g"))
    node = AggregateExec(read(table), keys, (named(AggregateCall.of("count"), "n"),), Phase.PARTIAL)
    found, _ = execute(node, {"t": table}, rows=each)
    assert found.num_rows <= 5 * each + 3 * 10
    small = found.filter(pc.equal(found["g"], 2))
    assert small.num_rows <= 3 * 10
    assert pc.sum(small["n.0"]).as_py() == 3 * each
    assert pc.sum(found["n.0"]).as_py() == table.num_rows
