"""ROLLUP, CUBE and GROUPING SETS give Spark's rows, in one task and over a shuffle, and rows are not repeated for each set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.conftest import settings

SHUFFLED = {
    "spark.kquery.smallBytes": "0",
    "spark.kquery.splitBytes": "20000",
    "spark.kquery.shufflePartitions": "3",
}
CALLS = (
    "count(*) AS n, count(price) AS c, sum(price) AS s, avg(price) AS a, min(price) AS least, max(note) AS most, "
    "round(stddev(weight), 6) AS d, sum(weight) FILTER (WHERE weight > 0.5) IS NULL AS none"
)


@pytest.fixture(scope="module")
def sales(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """4,000 rows whose keys have NULLs of their own, which are not those of a key left out."""
    rng = np.random.default_rng(31)
    n = 4_000
    columns = {
        "region": pa.array(rng.choice(["north", "south", "east"], n), mask=rng.random(n) < 0.1),
        "shop": pa.array(rng.integers(0, 9, n), mask=rng.random(n) < 0.1),
        "day": rng.integers(0, 40, n).astype("datetime64[D]"),
        "price": pa.array(rng.integers(0, 10_000, n), mask=rng.random(n) < 0.2)
        .cast(pa.decimal128(21, 2))
        .cast(pa.decimal128(9, 2)),
        "weight": rng.random(n),
        "note": [f"note {i % 300}" for i in range(n)],
    }
    file: Path = tmp_path_factory.mktemp("sales") / "sales.parquet"
    pq.write_table(pa.table(columns), file, row_group_size=500)
    spark.read.parquet(str(file)).createOrReplaceTempView("sales")
    return spark


@pytest.mark.parametrize("how", [{}, SHUFFLED], ids=["one task", "shuffled"])
@pytest.mark.parametrize(
    "keys, selected",
    [
        ("ROLLUP (region, shop, day)", "region, shop, day, grouping_id() AS g"),
        ("CUBE (region, shop, day)", "region, shop, day, grouping(shop) AS g"),
        ("GROUPING SETS ((region, shop), (region), (region), (shop), ())", "region, shop"),
        ("region, ROLLUP (shop, dayofweek(day))", "region, shop, dayofweek(day) AS weekday"),
        ("ROLLUP (price)", "price, sum(price) AS again"),
    ],
)
def test_sets_are_made_of_finer_groups(
    sales: SparkSession, keys: str, selected: str, how: dict[str, str]
) -> None:
    frame = sales.sql(f"SELECT {selected}, {CALLS} FROM sales GROUP BY {keys}")
    with settings(sales, how):
        stages = str(kq.explain(frame)).split("== Stages ==")[1]
        found = kquery_plan(frame, fallback="error", when="always").collect()
    assert "GroupingSetsExec" in stages and "ExpandExec" not in stages
    assert sorted(found, key=repr) == sorted(frame.collect(), key=repr)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT region, shop, {CALLS} FROM sales GROUP BY GROUPING SETS ((region), (shop))",  # no query asks for both
        "SELECT region, shop, count(DISTINCT note) AS n FROM sales GROUP BY ROLLUP (region, shop)",
    ],
)
def test_other_sets_are_grouped_row_by_row(sales: SparkSession, query: str) -> None:
    frame = sales.sql(query)
    assert "GroupingSetsExec" not in str(kq.explain(frame))
    found = kquery_plan(frame, fallback="error", when="always").collect()
    assert sorted(found, key=repr) == sorted(frame.collect(), key=repr)


def test_no_rows_have_no_groups_not_even_the_total(sales: SparkSession) -> None:
    frame = sales.sql("SELECT region, count(*) AS n FROM sales WHERE weight > 2 GROUP BY ROLLUP (region)")
    assert kquery_plan(frame, fallback="error", when="always").collect() == frame.collect()


def test_sums_overflow_as_in_spark(sales: SparkSession) -> None:
    frame = sales.sql(
        "SELECT region, sum(shop + 9223372036854775000) AS s FROM sales GROUP BY ROLLUP (region)"
    )
    for run in (frame, kquery_plan(frame, fallback="error", when="always")):
        with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
            run.collect()
