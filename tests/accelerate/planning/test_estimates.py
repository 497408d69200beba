"""``approx_count_distinct``: the same estimate as Spark's, whatever the precision, the type and the number of values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import KQueryError
from tests.conftest import exhaustive

ROWS = 200_000
TYPED = ["i", "l", "f", "x", "s", "b", "bin", "d", "ts", "dec", "big", "st", "arr", "nothing"]


@pytest.fixture(scope="module")
def estimated(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rows in groups of 1 to about 50,000 different values each; columns of all types."""
    file: Path = tmp_path_factory.mktemp("estimates") / "e.parquet"
    random = np.random.default_rng(47)
    group = np.minimum((random.random(ROWS) ** -0.5).astype(np.int64), 300)
    number = random.integers(0, 120_000, ROWS)
    some = random.random(ROWS) < 0.05
    pq.write_table(pa.table({"g": group, "n": pa.array(number, mask=some)}), file, row_group_size=30_000)
    spark.read.parquet(str(file)).createOrReplaceTempView("estimated_numbers")
    typed = file.parent / "typed"
    spark.sql(
        """
        SELECT g, CAST(n AS INT) AS i, n AS l, CAST(n AS FLOAT) AS f,
               CASE n % 5 WHEN 0 THEN -0.0D WHEN 1 THEN 0.0D WHEN 2 THEN CAST('NaN' AS DOUBLE) ELSE n / 7 END AS x,
               concat(repeat('text ', CAST(n % 9 AS INT)), n) AS s, n % 2 = 0 AS b, CAST(CAST(n AS STRING) AS BINARY) AS bin,
               date_add(DATE '2000-01-01', CAST(n % 20000 AS INT)) AS d, timestamp_seconds(n) AS ts,
               CAST(n / 100 AS DECIMAL(9, 2)) AS dec, CAST(n AS DECIMAL(30, 3)) AS big,
               named_struct('a', n % 100, 'b', CAST(n AS STRING)) AS st, array(n, n % 7) AS arr,
               CAST(NULL AS INT) AS nothing
        FROM estimated_numbers
        """
    ).write.parquet(str(typed))
    spark.read.parquet(str(typed)).createOrReplaceTempView("estimated")
    return str(typed)


def same(spark: SparkSession, sql: str) -> None:
    report = kq.verify(spark.sql(sql))
    assert report.ok, str(report)
    assert report.coverage == 1.0, str(report)


@pytest.mark.parametrize("column", TYPED)
@pytest.mark.parametrize("by", [pytest.param("", marks=exhaustive), "GROUP BY g"])
def test_of_every_type(spark: SparkSession, estimated: str, column: str, by: str) -> None:
    same(spark, f"SELECT {'g, ' if by else ''}approx_count_distinct({column}) AS n FROM estimated {by}")


@pytest.mark.parametrize(
    "error",
    [
        *(0.39, 0.2, 0.1, 0.05, 0.02, 0.01),
        *(pytest.param(e, marks=exhaustive) for e in (0.25, 0.13, 0.06, 0.03, 0.015, 0.006, 0.004, 0.0035)),
    ],
)
def test_of_every_precision(spark: SparkSession, estimated: str, error: float) -> None:
    """Group sizes fall by halves, so that each precision sees linear counting, corrected and raw estimates."""
    counted = f"approx_count_distinct(l, {error})"
    same(spark, f"SELECT {counted} AS n FROM estimated")
    # a group of the finest has a quarter of a million registers, in Spark, too
    halves = 6 if error < 0.01 else 1
    same(spark, f"SELECT floor(log2(l + 1) / {halves}) AS k, {counted} AS n FROM estimated GROUP BY 1")


@pytest.mark.parametrize("bits", [4, 5, 6, 7, 9, 11])
def test_estimates_near_the_thresholds(spark: SparkSession, bits: int) -> None:
    """Forty groups with 0.1 to 8 values a register each: where the bias is corrected, and where no more."""
    error, most = 1.106 / 2 ** (bits / 2), 1 << bits
    rows = f"SELECT k, explode(sequence(1, k * {most} div 5 + 1)) AS v FROM (SELECT explode(sequence(1, 40)) AS k)"
    sql = f"SELECT k, approx_count_distinct(v * 1000 + k, {error:.6f}) AS n FROM ({rows}) GROUP BY k"
    want = spark.sql(sql).orderBy("k").collect()
    actual = spark.sql(sql).transform(kquery_plan, when="always").orderBy("k").collect()
    assert [r["n"] for r in actual] == [r["n"] for r in want]
    assert len({r["n"] for r in want}) > 20


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT approx_count_distinct(DISTINCT s), approx_count_distinct(l) FILTER (WHERE b) FROM estimated",
        "SELECT g, approx_count_distinct(l), count(DISTINCT i), sum(l) FROM estimated GROUP BY g",
        "SELECT g, approx_count_distinct(l, 0.1) FILTER (WHERE b), count(DISTINCT d), count(DISTINCT dec) FROM estimated GROUP BY g",
        "SELECT g, approx_count_distinct(l) + 1 FROM estimated GROUP BY g HAVING approx_count_distinct(s) > 10",
        "SELECT approx_count_distinct(l), approx_count_distinct(s) FROM estimated WHERE l < 0",
        "SELECT i, approx_count_distinct(s) FROM estimated GROUP BY i",
        "SELECT g, b, approx_count_distinct(l) FROM estimated GROUP BY ROLLUP (g, b)",
        "SELECT n, (SELECT approx_count_distinct(s) FROM estimated e WHERE e.i = o.n) AS c FROM estimated_numbers o WHERE g = 300",
    ],
)
def test_among_other_aggregates(spark: SparkSession, estimated: str, sql: str) -> None:
    same(spark, sql)


def test_over_a_window_it_stays_with_spark(spark: SparkSession, estimated: str) -> None:
    frame = spark.sql("SELECT l, approx_count_distinct(s) OVER (PARTITION BY g) AS n FROM estimated")
    assert "approx_count_distinct over a window is not supported" in str(kq.explain(frame))


def test_finer_estimates_stay_with_spark(spark: SparkSession, estimated: str) -> None:
    frame = spark.sql("SELECT approx_count_distinct(l, 0.0015) FROM estimated")
    assert "only from 0.0022" in str(kq.explain(frame))


@pytest.mark.parametrize(
    "call", ["approx_count_distinct(l)", "approx_count_distinct(s, 0.02)", "approx_count_distinct(x + 1)"]
)
def test_without_spark(spark: SparkSession, estimated: str, call: str) -> None:
    context = kq.ExecutionContext()
    context.register_parquet("estimated", estimated)
    sql = f"SELECT g, {call} FROM estimated GROUP BY g ORDER BY g"
    want = spark.sql(sql).toArrow()
    actual = context.sql(sql).to_arrow()
    assert actual.column_names == want.column_names
    assert actual.to_pydict() == want.to_pydict()


@pytest.mark.parametrize("error, sentence", [("0.5", "at most 0.39"), ("0.0D", "above 0"), ("n", "constant")])
def test_wrong_errors(tmp_path: Path, error: str, sentence: str) -> None:
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "t.parquet")
    context = kq.ExecutionContext()
    context.register_parquet("t", str(tmp_path / "t.parquet"))
    with pytest.raises(KQueryError, match=sentence):
        context.sql(f"SELECT approx_count_distinct(n, {error}) FROM t").to_arrow()
