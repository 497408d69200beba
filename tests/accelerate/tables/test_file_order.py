"""Files are read in Spark's order, larger ones first, where the order of rows decides the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf
from pyspark.sql.types import StringType

from kquery_spark import kquery_plan
from tests.conftest import settings


@pytest.fixture(scope="module")
def rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Zeros of both signs in three files; the last one by name is the largest and the second one the smallest."""
    directory = tmp_path_factory.mktemp("files")
    for name, zero, count in (("a", -0.0, 40), ("b", 0.0, 2), ("c", 0.0, 2000)):
        ids = [f"{name}{i:05}" for i in range(count)]
        table = pa.table({"id": ids, "zero": [zero] * count, "tie": [[1]] * count})
        pq.write_table(table, Path(directory) / f"{name}.parquet", use_dictionary=False, compression="none")
    return spark.read.parquet(str(directory))


def _keys(group: tuple[float, ...], frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"key": [str(group[0])], "first": [frame["id"][0]]})


@pandas_udf(StringType())
def first(ids: pd.Series) -> str:
    return str(ids[0])


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "first": lambda rows: rows.agg(F.first("id").alias("f"), F.last("id").alias("l")),
    "ties": lambda rows: rows.agg(F.expr("min_by(id, tie)").alias("n"), F.expr("max_by(id, tie)").alias("x")),
    "list": lambda rows: rows.groupBy("zero").agg(F.collect_list("id").alias("ids")),
    "group of a function": lambda rows: rows.groupBy("zero").applyInPandas(_keys, "key string, first string"),
    "aggregate of a function": lambda rows: rows.groupBy("zero").agg(first("id").alias("f")),
}


@pytest.mark.parametrize("name", QUERIES)
def test_larger_files_come_first(spark: SparkSession, rows: DataFrame, name: str) -> None:
    query = QUERIES[name](rows)
    with settings(spark, {"spark.sql.files.minPartitionNum": "1"}):
        expected = query.collect()
    for driver_bytes in ("8m", "0"):
        with settings(spark, {"spark.kquery.driverBytes": driver_bytes}):
            actual = query.transform(kquery_plan, when="always", fallback="error").collect()
        assert sorted(map(repr, actual)) == sorted(map(repr, expected))
