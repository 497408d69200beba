"""What numbers, draws or names by partition sees Spark's own partitions, wherever it stands in a query."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.conftest import settings

#: Rows that Spark gives in the order of the files, and that the engine would join.
SOME = "(SELECT k, x AS s FROM rows_by_file WHERE k IN (SELECT k FROM rows_by_file WHERE x > 97))"
SUMS = "(SELECT k, sum(x) AS s FROM rows_by_file GROUP BY k)"
QUERIES = {
    "numbered": f"SELECT k, s, monotonically_increasing_id() AS n FROM {SOME}",
    "partition": f"SELECT k, s, spark_partition_id() AS n FROM {SOME}",
    "seeded": f"SELECT k, rand(7) AS r, randn(7) AS q FROM {SOME}",
    "nested": f"SELECT k, s * 2 + abs(round(rand(7), 3)) AS r FROM {SOME}",
    "filtered": f"SELECT k, s FROM {SOME} WHERE rand(3) < 0.5",
    "sampled": f"SELECT k, s FROM {SOME} TABLESAMPLE (50 PERCENT) REPEATABLE (5)",
    "grouped above": f"SELECT n % 3 AS g, count(*) AS c FROM (SELECT monotonically_increasing_id() AS n FROM {SOME}) GROUP BY 1",
    "sorted above": f"SELECT k, n FROM (SELECT k, spark_partition_id() AS n FROM {SOME}) ORDER BY k, n LIMIT 9",
    "joined above": f"SELECT a.k, n, x FROM (SELECT k, rand(1) AS n FROM {SOME}) a JOIN rows_by_file b ON a.k = b.k WHERE x < 40",
    "in an aggregate": f"SELECT max(r) AS m FROM (SELECT k, rand(11) AS r FROM {SOME})",
    "in one branch": f"SELECT k, rand(1) AS n FROM {SOME} UNION ALL SELECT k, 0.5 FROM {SOME}",
    "above a repartition": f"SELECT k, spark_partition_id() AS n FROM (SELECT /*+ REPARTITION(3, k) */ k FROM {SOME})",
    "above a join": "SELECT a.k, rand(5) AS r FROM rows_by_file a JOIN (SELECT DISTINCT k FROM rows_by_file) b ON a.k = b.k",
    "file names": f"SELECT k, regexp_extract(input_file_name(), '[^/]*$', 0) AS f FROM {SOME}",
    "above an aggregate": f"SELECT k, s, rand(7) AS r FROM {SUMS}",
}


@pytest.fixture(scope="module")
def rows_by_file(spark: SparkSession, tmp_path_factory: Any) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("rows_by_file")
    rng = np.random.default_rng(3)
    for i in range(5):
        columns = {"k": rng.integers(0, 50, 400), "x": rng.integers(0, 100, 400)}
        pq.write_table(pa.table(columns), directory / f"{i}.parquet")
    given = {"spark.sql.files.openCostInBytes": "1", "spark.sql.files.maxPartitionBytes": "9000"}
    with settings(spark, {**given, "spark.sql.adaptive.enabled": "false"}):
        spark.read.parquet(str(directory)).createOrReplaceTempView("rows_by_file")
        yield
    spark.catalog.dropTempView("rows_by_file")


def _rows(frame: Any) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_that_sees_partitions_sees_those_of_spark(
    name: str, spark: SparkSession, rows_by_file: None
) -> None:
    frame = spark.sql(QUERIES[name])
    want = _rows(frame)
    for when in ("auto", "always"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", kq.FallbackWarning)
            fast = frame.transform(kquery_plan, when=when)
        assert _rows(fast) == want


@pytest.mark.parametrize("name", ["numbered", "seeded", "sampled", "file names"])
def test_a_session_with_the_engine_on_sees_them_too(
    name: str, spark: SparkSession, rows_by_file: None
) -> None:
    want = _rows(spark.sql(QUERIES[name]))
    kq.enable(spark, when="always")
    try:
        assert _rows(spark.sql(QUERIES[name])) == want
    finally:
        kq.disable(spark)


def test_the_reason_says_what_sees_the_partitions(spark: SparkSession, rows_by_file: None) -> None:
    explained = kq.explain(spark.sql(QUERIES["numbered"]))
    assert not explained.accelerated
    assert any(
        r.startswith("monotonically_increasing_id is computed from the partition")
        for _, r in explained.reasons
    )
    assert any(r.startswith("A sample draws") for _, r in kq.explain(spark.sql(QUERIES["sampled"])).reasons)


def test_numbers_without_a_seed_keep_nothing_from_the_engine(spark: SparkSession, rows_by_file: None) -> None:
    assert kq.explain(spark.sql(f"SELECT k, rand() AS r FROM {SOME}")).coverage > 0
