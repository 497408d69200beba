from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.expr import Column, Expr
from kquery_spark.logical import Join, JoinKind, LogicalPlan, Projection
from kquery_spark.logical.join import JoinKey
from kquery_spark.physical.operators import BuildSide, JoinExec
from kquery_spark.types import names as t
from kquery_spark.types.vector import Vector
from tests.physical.harness import (
    CONFIGS,
    assert_like_spark,
    assert_same_rows,
    c,
    call,
    execute,
    join_table,
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

NAN = float("nan")
D = Decimal
T1 = pa.table({"a": [0, 1, 2, 2], "b": [4, 5, 7, 8], "c": [7, 8, 9, 1]})
T2 = pa.table({"a2": [10, 20, 30, 40], "b2": [2, 2, 3, 4], "c2": [7, 5, 6, 6]})

LEFT = pa.table(
    {
        "i": pa.array([1, 2, None, 2, 3, 5, 2**31 - 1, -(2**31)], pa.int32()),
        "l": pa.array([2**63 - 1, -(2**63), 0, None, 5, 5, 7, 2**40], pa.int64()),
        "f": [0.0, NAN, None, 1.5, -0.0, 2.0, NAN, 1.5],
        "d": pa.array(
            [D("1.00"), D("2.50"), None, D("-1.00"), D("2.50"), D("9.99"), D(0), D("1.00")],
            pa.decimal128(9, 2),
        ),
        "w": pa.array([D(10) ** 30, D(1), None, D(-1), D(10) ** 30, D(2), D(0), D(1)], pa.decimal128(38, 2)),
        "s": ["x", "", None, "é", "x", "y", "z", "xx"],
        "b": [True, False, None, True, False, None, True, True],
        "x": pa.array(range(8), pa.int64()),
    }
)
RIGHT = pa.table(
    {
        "i2": pa.array([2, 2, None, 7, 2**31 - 1, 1], pa.int32()),
        "l2": pa.array([2**63 - 1, 5, 5, None, 1, -(2**63)], pa.int64()),
        "f2": [-0.0, NAN, None, 1.5, 3.0, NAN],
        "d2": pa.array([D("2.50"), D("1.00"), None, D("7.00"), D("2.50"), D(0)], pa.decimal128(9, 2)),
        "w2": pa.array([D(10) ** 30, D(10) ** 29, None, D(1), D(-1), D(1)], pa.decimal128(38, 2)),
        "s2": ["x", "é", None, "", "q", "x"],
        "b2": [True, None, False, None, True, True],
        "x2": pa.array(range(100, 106), pa.int64()),
    }
)
SQL_KIND = {
    JoinKind.INNER: "JOIN",
    JoinKind.LEFT: "LEFT JOIN",
    JoinKind.RIGHT: "RIGHT JOIN",
    JoinKind.FULL: "FULL JOIN",
    JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
}
KINDS = list(SQL_KIND)
NAMES = "ilfdwsb"


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession) -> None:
    register(spark, lhs=LEFT, rhs=RIGHT, lhs0=LEFT.slice(0, 0), rhs0=RIGHT.slice(0, 0))


def key(left: LogicalPlan, right: LogicalPlan, name: str, null_safe: bool = False) -> JoinKey:
    return JoinKey(c(left, name), c(right, name + "2"), null_safe)


def both_builds(
    left: pa.Table, right: pa.Table, kind: JoinKind, keys: list[JoinKey], condition: Expr | None
) -> pa.Table:
    """The join run with either side built; they must agree."""
    logical = Join(scan(left), scan(right), kind, tuple(keys), condition)
    done = []
    for build in BuildSide:
        plan = JoinExec(
            read(left, "l"), read(right, "r"), kind, tuple(keys), condition, build, logical.schema
        )
        done.append(execute(plan, {"l": left, "r": right})[0])
    assert_same_rows(done[0], done[1], note="build sides")
    return done[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_joins_by_one_key_of_every_type(kind: JoinKind, name: str, spark: SparkSession) -> None:
    left, right = scan(LEFT), scan(RIGHT)
    plan = Join(left, right, kind, (key(left, right, name),))
    want = spark.sql(f"SELECT * FROM lhs {SQL_KIND[kind]} rhs ON {name} = {name}2").toArrow()
    for config in CONFIGS:
        assert_same_rows(run(plan, config), want)
    assert_same_rows(both_builds(LEFT, RIGHT, kind, list(plan.keys), None), want)


@pytest.mark.parametrize("kind", KINDS)
def test_null_safe_several_keys_and_residual(kind: JoinKind, spark: SparkSession) -> None:
    left, right = scan(LEFT), scan(RIGHT)
    keys = [key(left, right, "b", True), key(left, right, "f", True)]
    residual = call("lt", c(left, "x"), call("subtract", c(right, "x2"), lit(99, t.LONG)))
    want = spark.sql(
        f"SELECT * FROM lhs {SQL_KIND[kind]} rhs ON b <=> b2 AND f <=> f2 AND x < x2 - 99"
    ).toArrow()
    for config in CONFIGS:
        assert_same_rows(run(Join(left, right, kind, tuple(keys), residual), config), want)
    assert_same_rows(both_builds(LEFT, RIGHT, kind, keys, residual), want)


@pytest.mark.parametrize("kind", KINDS)
def test_nested_loop_and_cross(kind: JoinKind, spark: SparkSession) -> None:
    left, right = scan(LEFT), scan(RIGHT)
    less = call("lt", c(left, "f"), c(right, "f2"))
    for condition, text in ((less, "f < f2"), (None, "true")):
        want = spark.sql(f"SELECT * FROM lhs {SQL_KIND[kind]} rhs ON {text}").toArrow()
        for config in CONFIGS:
            assert_same_rows(run(Join(left, right, kind, (), condition), config), want, note=text)
        assert_same_rows(both_builds(LEFT, RIGHT, kind, [], condition), want, note=text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sides", ["0+", "+0", "00"])
def test_empty_sides(kind: JoinKind, sides: str, spark: SparkSession) -> None:
    left = LEFT.slice(0, 0) if sides[0] == "0" else LEFT
    right = RIGHT.slice(0, 0) if sides[1] == "0" else RIGHT
    names = ("lhs0" if sides[0] == "0" else "lhs", "rhs0" if sides[1] == "0" else "rhs")
    keys = [key(scan(LEFT), scan(RIGHT), "i"), key(scan(LEFT), scan(RIGHT), "s")]
    want = spark.sql(f"SELECT * FROM {names[0]} {SQL_KIND[kind]} {names[1]} ON i = i2 AND s = s2").toArrow()
    for config in CONFIGS:
        assert_same_rows(run(Join(scan(left), scan(right), kind, tuple(keys)), config), want)
    assert_same_rows(both_builds(left, right, kind, keys, None), want)


@pytest.mark.parametrize("right_rows", ["true", "i2 IS NOT NULL", "i2 > 1000 AND i2 < 1001", "i2 = 2"])
def test_not_in_is_null_aware(right_rows: str, spark: SparkSession) -> None:
    chosen = spark.sql(f"SELECT * FROM rhs WHERE {right_rows}").toArrow()
    right = pa.table(chosen.columns, schema=RIGHT.schema) if chosen.num_rows else RIGHT.slice(0, 0)
    plan = Join(
        scan(LEFT), scan(right), JoinKind.ANTI, (key(scan(LEFT), scan(RIGHT), "i"),), None, null_aware=True
    )
    assert_like_spark(
        spark, f"SELECT * FROM lhs WHERE i NOT IN (SELECT i2 FROM rhs WHERE {right_rows})", plan
    )


def test_existence_marks_each_left_row_once(spark: SparkSession) -> None:
    left, right = scan(LEFT), scan(RIGHT)
    plan = Join(left, right, JoinKind.EXISTENCE, (key(left, right, "i"),), exists="found")
    shown = Projection(plan, (named(c(plan, "x"), "x"), named(c(plan, "found"), "found")))
    assert_like_spark(spark, "SELECT x, EXISTS (SELECT 1 FROM rhs WHERE i2 = i) FROM lhs", shown)


def test_pairs_of_the_small_engine() -> None:
    build = Vector(t.LONG, pa.array([10, 30, 20, 10]))
    probe = Vector(t.LONG, pa.array([10, 20, 30, 10]))
    table = join_table([build])
    pairs = table.matches(*table.counts([probe], 4))
    found = sorted(zip(pairs.probe.tolist(), pairs.build.tolist(), strict=True))
    assert found == [(0, 0), (0, 3), (1, 2), (2, 1), (3, 0), (3, 3)]


def test_two_wide_ranges_of_keys_are_not_packed_past_64_bits() -> None:
    far = [i * 2**40 for i in range(20)]
    build = [[*far, 0, 0], [5] + [6] * 19 + [0, 2**61 - 3]]
    table = join_table([Vector(t.LONG, pa.array(k)) for k in build])
    probe = [Vector(t.LONG, pa.array(far)), Vector(t.LONG, pa.array([5] * 20))]
    pairs = table.matches(*table.counts(probe, 20))
    assert (pairs.probe.tolist(), pairs.build.tolist()) == ([0], [0])


@pytest.mark.parametrize("edges", [[2**63 - 1], [-(2**63)], [2**63 - 1, -(2**63)], [0]])
def test_decimals_past_64_bits_match_no_narrow_one(edges: list[int]) -> None:
    kind = pa.decimal128(21, 0)
    build = Vector(kind, pa.array(edges, t.LONG))
    values = [9 * 10**19, 2**63 - 1, -(2**63), -(10**20), None, 0]
    probe = Vector(kind, pa.array([None if v is None else D(v) for v in values], kind))
    table = join_table([build])
    pairs = table.matches(*table.counts([probe], len(values)))
    found = {(values[i], edges[j]) for i, j in zip(pairs.probe, pairs.build, strict=True)}
    assert found == {(v, v) for v in edges}


def test_residual_tables_of_the_book() -> None:
    left, right = scan(T1), scan(T2)
    keys = (JoinKey(c(left, "a"), c(right, "b2")),)
    more = call("gt", c(left, "c"), c(right, "c2"))
    both = [(2, 7, 9, 10, 2, 7), (2, 7, 9, 20, 2, 5)]
    n = (None,) * 3
    for config in CONFIGS:
        actual = rows_of(run(Join(left, right, JoinKind.LEFT, keys, more), config))
        assert set(actual) == {*both, (0, 4, 7, *n), (1, 5, 8, *n), (2, 8, 1, *n)} and len(actual) == 5
        actual = rows_of(run(Join(left, right, JoinKind.RIGHT, keys, more), config))
        assert set(actual) == {*both, (*n, 30, 3, 6), (*n, 40, 4, 6)} and len(actual) == 4


def test_join_nullability() -> None:
    fields = [pa.field("a", pa.int64(), False)], [pa.field("b", pa.int64(), False)]
    left, right = (scan(pa.table([[1]], schema=pa.schema(f))) for f in fields)
    keys = (JoinKey(c(left, "a"), c(right, "b")),)
    nullable = {k: [f.nullable for f in Join(left, right, k, keys).schema] for k in KINDS[:4]}
    assert nullable == {
        JoinKind.INNER: [False, False],
        JoinKind.LEFT: [False, True],
        JoinKind.RIGHT: [True, False],
        JoinKind.FULL: [True, True],
    }


@pytest.mark.parametrize("form", ["dictionary", "plain", "huge", "narrow", "multi"])
@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.FULL, JoinKind.ANTI])
def test_larger_joins_agree_with_python(form: str, kind: JoinKind) -> None:
    rng = np.random.default_rng(3)
    domain = rng.integers(-(2**63), 2**63 - 1, 300)
    a, b = rng.integers(0, 300, 2000), rng.integers(100, 400, 700) % 300
    columns = []
    for side, rows in (("a", a), ("b", b)):
        values: list[pa.Array]
        if form == "dictionary":
            values = [pa.array([f"k{v}" for v in rows]).dictionary_encode()]
        elif form == "plain":
            values = [pa.array([f"k{v}" for v in rows])]
        elif form == "huge":
            values = [pa.array(domain[rows])]
        elif form == "narrow":
            values = [pa.array([D(int(v)) / 100 for v in rows], pa.decimal128(12, 2))]
        else:
            values = [
                pa.array(domain[rows // 7]),
                pa.array(domain[rows]),
                pa.array([f"{v % 3}" for v in rows]),
            ]
        names = [f"k{side}{i}" for i in range(len(values))]
        data = [*values, pa.array(np.arange(len(rows)))]
        columns.append(pa.table(data, [*names, f"r{side}"]))
    left, right = columns
    kinds = [t.STRING if pa.types.is_dictionary(x) else x for x in left.schema.types[:-1]]
    keys = [JoinKey(Column(f"ka{i}", k), Column(f"kb{i}", k)) for i, k in enumerate(kinds)]
    cast = [
        pa.schema(
            [pa.field(f.name, t.STRING if pa.types.is_dictionary(f.type) else f.type) for f in x.schema]
        )
        for x in columns
    ]
    actual = both_builds(left.cast(cast[0]), right.cast(cast[1]), kind, keys, None)
    by_key: dict[int, list[int]] = {}
    for j, v in enumerate(b.tolist()):
        by_key.setdefault(v, []).append(j)
    pairs = [(i, j) for i, v in enumerate(a.tolist()) for j in by_key.get(v, [])]
    lonely = [i for i, v in enumerate(a.tolist()) if v not in by_key]
    if kind is JoinKind.ANTI:
        assert sorted(actual["ra"].to_pylist()) == lonely
        return
    want: list[tuple[int | None, int | None]] = list(pairs)
    if kind is JoinKind.FULL:
        have = set(a.tolist())
        want += [(i, None) for i in lonely] + [(None, j) for j, v in enumerate(b.tolist()) if v not in have]
    found = list(zip(actual["ra"].to_pylist(), actual["rb"].to_pylist(), strict=True))
    assert sorted(found, key=str) == sorted(want, key=str)
