"""Sorting whole results: as Spark orders them, by one task or by several, and by the engine where it is faster than Spark."""

from __future__ import annotations

from decimal import Decimal
from itertools import cycle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.config.engine import EngineConfig
from tests.conftest import settings

ROWS = 400_000


@pytest.fixture(scope="module")
def sorted_tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    directory: Path = tmp_path_factory.mktemp("sorting")
    random = np.random.default_rng(3)
    narrow = pa.table({"a": random.integers(0, 10**6, ROWS), "b": random.uniform(0, 1, ROWS)})
    text = pa.array([f"{i * 7919 % 400_009:06d} " + "and a long remark " * 8 for i in range(ROWS // 4)])
    wide = pa.table({"a": narrow["a"][: ROWS // 4], **{f"c{i}": text for i in range(4)}})
    few = [f"{'prefix ' * (i % 4)}{i * 7919 % 20_011}" for i in range(20_000)]
    odd = ["", "é", "e\u0301", "\uffff", "\U0001f600", "a\0", "a", "a\0b", "prefix ", None, None] * 20
    strings = pa.table({"s": [*few, *odd], "n": np.arange(len(few) + len(odd))})
    strings = strings.append_column("b", strings["s"].cast(pa.binary()))
    for name, table in {"narrow": narrow, "wide": wide, "strings": strings}.items():
        pq.write_table(table, directory / f"{name}.parquet")
        spark.read.parquet(str(directory / f"{name}.parquet")).createOrReplaceTempView(f"sorting_{name}")
    return spark


@pytest.mark.parametrize(
    "order",
    ["s, n", "s DESC, n", "s DESC NULLS FIRST, n DESC", "s NULLS LAST, n", "b, n", "b DESC NULLS FIRST, n"],
)
def test_strings_that_are_mostly_different_come_in_sparks_order(
    sorted_tables: SparkSession, order: str
) -> None:
    report = kq.verify(sorted_tables.sql(f"SELECT * FROM sorting_strings ORDER BY {order}"))
    assert report.ok and report.accelerated, str(report)
    assert report.ordered_by


@pytest.mark.parametrize(
    ("table", "cores", "wins"), [("narrow", 2, True), ("narrow", 64, False), ("wide", 2, False)]
)
def test_one_task_sorts_where_it_beats_all_of_sparks(
    sorted_tables: SparkSession, table: str, cores: int, wins: bool
) -> None:
    with settings(sorted_tables, {"spark.kquery.parallelism": str(cores)}):
        explained = kq.explain(sorted_tables.sql(f"SELECT * FROM sorting_{table} ORDER BY a"))
    assert explained.accelerated is wins, str(explained)
    assert ("share the sort" in str(explained)) is not wins


def test_more_rows_than_the_setting_allows_fall_back_to_spark(sorted_tables: SparkSession) -> None:
    query = sorted_tables.sql("SELECT * FROM sorting_narrow ORDER BY b")
    with settings(sorted_tables, {"spark.kquery.sortRows": "100000"}):
        explained = kq.explain(query)
        assert not explained.accelerated
        assert "sorting about 400,000 rows in one task exceeds" in str(explained)
    assert kq.explain(query).accelerated


SHARED = {"spark.kquery.smallBytes": "0"}


def shared(frame: DataFrame) -> DataFrame:
    """The frame by the engine, its last sort shared by tasks."""
    with settings(frame.sparkSession, SHARED):
        explained = kq.explain(frame)
        assert len(explained.planned.parts[0].compiled.graph.result.tasks) > 1, str(explained)
        return frame.transform(lambda f: kquery_plan(f, fallback="error", when="always"))


@pytest.fixture(scope="module")
def all_types(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Rows of every type that is sorted by, with NULLs, NaN, zeros of both signs, and no two rows alike."""
    random = np.random.default_rng(17)
    count = 5_000
    doubles = random.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.5, 1e300], count)
    wide = [
        Decimal(int(n)) * 10 ** int(k)
        for n, k in zip(random.integers(-9, 9, count), random.integers(0, 25, count), strict=True)
    ]
    columns = {
        "i": pa.array(random.integers(-(2**63), 2**63 - 1, count)),
        "d": pa.array(doubles),
        "f": pa.array(np.where(doubles == 1e300, 3.0, doubles).astype(np.float32)),
        "s": pa.array(random.choice(["", "a", "é", "\uffff", "😀", "ab", "a b", "zz"], count)),
        "b": pa.array(random.integers(0, 2, count).astype(bool)),
        "x": pa.array(
            [bytes(random.integers(0, 256, n).astype(np.uint8)) for n in random.integers(0, 4, count)]
        ),
        "t": pa.array(random.integers(-(10**15), 10**15, count)).cast(pa.timestamp("us", "UTC")),
        "day": pa.array(random.integers(-9_999, 40_000, count).astype(np.int32)).cast(pa.date32()),
        "small": pa.array(random.integers(-(10**9), 10**9, count))
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(22, 2)),
        "wide": pa.array(wide, pa.decimal128(38, 2)),
    }
    masked = {n: pc.if_else(pa.array(random.random(count) < 0.1), None, c) for n, c in columns.items()}
    path = tmp_path_factory.mktemp("types") / "all.parquet"
    pq.write_table(pa.table({"n": random.permutation(count), **masked}), path, row_group_size=700)
    return spark.read.parquet(str(path))


TYPES = ["i", "d", "f", "s", "b", "x", "t", "day", "small", "wide"]
DIRECTIONS = cycle([("asc", "desc_nulls_first"), ("asc_nulls_last", "desc")])


@pytest.mark.parametrize(("column", "directions"), zip(TYPES, DIRECTIONS, strict=False))
def test_tasks_that_share_a_sort_give_sparks_order(
    all_types: DataFrame, column: str, directions: tuple[str, str]
) -> None:
    for direction in directions:
        frame = all_types.orderBy(getattr(all_types[column], direction)(), "n")
        assert [r.n for r in shared(frame).collect()] == [r.n for r in frame.collect()]


@pytest.fixture
def ordered(all_types: DataFrame) -> DataFrame:
    return all_types.orderBy("i", "n").select("n", "i", "s")


def test_actions_keep_the_order_of_the_tasks(ordered: DataFrame, tmp_path: Path) -> None:
    expected = ordered.collect()
    frame = shared(ordered)
    assert frame.collect() == expected
    assert frame.toArrow().equals(ordered.toArrow())
    assert frame.toPandas().equals(ordered.toPandas())
    assert frame.take(5) == expected[:5] and frame.tail(5) == expected[-5:] and frame.first() == expected[0]
    assert frame.count() == len(expected) and not frame.isEmpty()
    assert frame._show_string(3) == ordered._show_string(3)  # type: ignore[operator]
    frame.write.parquet(str(tmp_path / "sorted"))
    files = sorted((tmp_path / "sorted").glob("*.parquet"))
    assert len(files) == 2
    assert [n for f in files for n in pq.read_table(f)["n"].to_pylist()] == [r.n for r in expected]


def test_what_spark_makes_of_a_sorted_frame_finds_its_order_in_one_task(ordered: DataFrame) -> None:
    """Spark does not keep the order of partitions where it coalesces partitions."""
    expected = ordered.collect()
    frame = shared(ordered)
    assert frame.rdd.getNumPartitions() == 1
    assert frame.limit(7).toArrow().equals(ordered.limit(7).toArrow())
    assert frame.where("i > 0").limit(7).collect() == [r for r in expected if r.i is not None and r.i > 0][:7]
    assert list(frame.toLocalIterator()) == expected
    assert frame.coalesce(1).collect() == expected
    assert frame.cache().collect() == expected
    assert frame.count() == len(expected)
    frame.unpersist()
    assert frame.collect() == expected


def test_what_is_made_of_more_rows_than_a_task_may_sort_is_sparks(ordered: DataFrame) -> None:
    with settings(ordered.sparkSession, {"spark.kquery.sortRows": "4000"}):
        frame = shared(ordered)
        assert frame.collect() == ordered.collect()
        assert frame.limit(7).toArrow().equals(ordered.limit(7).toArrow())
        assert "MapInArrow" not in _plan(frame.limit(7))
        assert "Operations on top of the sorted result run in Spark" in str(kq.explain(frame))
    assert "MapInArrow" in _plan(shared(ordered).limit(7))


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan())


def test_a_shared_sort_is_measured_and_reported(ordered: DataFrame) -> None:
    with settings(ordered.sparkSession, SHARED):
        explained = kq.explain(ordered, analyze=True)
    text = str(explained)
    assert "-> range(#i) into 2" in text
    assert sum(stage.tasks for stage in explained.stages[0]) >= 4


def test_rows_in_a_task_are_bounded_not_rows_in_all(sorted_tables: SparkSession) -> None:
    query = sorted_tables.sql("SELECT * FROM sorting_narrow ORDER BY b")
    with settings(sorted_tables, {**SHARED, "spark.kquery.sortRows": "250000"}):
        assert kq.explain(query).accelerated
    with settings(sorted_tables, {**SHARED, "spark.kquery.sortRows": "150000"}):
        assert "in 2 tasks exceeds" in str(kq.explain(query))


def test_a_context_on_spark_shares_sorts_as_well(ordered: DataFrame) -> None:
    context = kq.ExecutionContext(ordered.sparkSession, config=EngineConfig(small_bytes=0, driver_bytes=0))
    context.register_parquet("t", ordered.inputFiles())
    actual = context.sql("SELECT n, i, s FROM t ORDER BY i, n")
    assert "-> range(#i) into 2" in actual.explain()
    assert actual.to_arrow().equals(ordered.toArrow())
    assert actual.to_spark().rdd.getNumPartitions() == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT first(b) AS f, last(b) AS l, max_by(b, a % 7) AS m FROM (SELECT * FROM narrow ORDER BY b)",
        "SELECT collect_list(a) AS c FROM (SELECT * FROM narrow WHERE a < 300 ORDER BY b DESC)",
        "SELECT a % 5 AS k, first(b) AS f, any_value(a) AS v FROM (SELECT * FROM narrow ORDER BY a, b) GROUP BY a % 5",
        "SELECT sum(v) AS s, avg(v) AS a FROM (SELECT * FROM VALUES (1e16D, 'b'), (1D, 'c'), (-1e16D, 'a') AS t (v, k) ORDER BY k)",
        "SELECT g, collect_list(v) AS c FROM (SELECT * FROM VALUES (3, 1), (1, 1), (2, 2) AS t (v, g) ORDER BY v) GROUP BY g",
    ],
)
def test_aggregates_that_see_the_order_of_a_subquery(sorted_tables: SparkSession, query: str) -> None:
    expected = sorted_tables.sql(query.replace("narrow", "sorting_narrow"))
    context = kq.ExecutionContext(config=EngineConfig(parallelism=2))
    (file,) = sorted_tables.table("sorting_narrow").inputFiles()
    context.register_parquet("narrow", file.removeprefix("file:"))
    actual = context.sql(query).to_arrow().to_pylist()
    assert sorted(actual, key=repr) == sorted(expected.toArrow().to_pylist(), key=repr)
    report = kq.verify(expected)
    assert report.ok, str(report)
