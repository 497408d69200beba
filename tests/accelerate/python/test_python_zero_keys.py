"""Groups of Python functions whose floating-point key has zeros of both signs: the key, the rows, and their order are Spark's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf
from pyspark.sql.types import StringType

from tests.accelerate.python.python_functions import arrow_udf, check, with_arrow_udf, with_tables
from tests.conftest import settings

RETURNS = "key string, seen string"
ZEROS = {"negative first": (-0.0, 0.0), "positive first": (0.0, -0.0), "negative only": (-0.0, -0.0)}
#: The type of the key and whether stages run in the driver's threads.
PLACES = [("double", "0"), ("double", "8m"), ("float", "0")]


def frame_of_group(key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The key, and the rows in their order."""
    seen = list(frame.itertuples(index=False, name=None))
    return pd.DataFrame({"key": [str(key[0])], "seen": [str(seen)]})


def table_of_group(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
    """The same of a table; the key is a scalar of Arrow."""
    return pa.table({"key": [str(key[0])], "seen": [str(table.to_pylist())]})


def frame_of_pair(key: tuple[Any, ...], left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """The key, and the rows of both sides."""
    seen = [list(side.itertuples(index=False, name=None)) for side in (left, right)]
    return pd.DataFrame({"key": [str(key[0])], "seen": [str(seen)]})


def table_of_pair(key: tuple[Any, ...], left: pa.Table, right: pa.Table) -> pa.Table:
    """The same of tables."""
    return pa.table({"key": [str(key[0])], "seen": [str([left.to_pylist(), right.to_pylist()])]})


@pandas_udf(StringType())
def listed(values: pd.Series) -> str:
    """The values of a group in their order."""
    return str(values.tolist())


def pairs(left: DataFrame, right: DataFrame) -> Any:
    """The groups of both sides with the same key."""
    return left.groupBy("k").cogroup(right.groupBy("k"))


def with_zeros_reversed(rows: DataFrame) -> DataFrame:
    """The rows with a zero of the other sign as the key."""
    return rows.withColumn("k", -F.col("k"))


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "applyInPandas": lambda rows: rows.groupBy("k").applyInPandas(frame_of_group, RETURNS),
    "applyInArrow": lambda rows: rows.groupBy("k").applyInArrow(table_of_group, RETURNS),
    "two keys": lambda rows: rows.groupBy("k", F.col("id") % 2).applyInPandas(frame_of_group, RETURNS),
    "pairs of frames": lambda rows: pairs(rows, with_zeros_reversed(rows)).applyInPandas(frame_of_pair, RETURNS),
    "pairs of tables": lambda rows: pairs(rows, with_zeros_reversed(rows)).applyInArrow(table_of_pair, RETURNS),
    "right side only": lambda rows: pairs(rows.where("id < 0"), rows).applyInPandas(frame_of_pair, RETURNS),
    "pandas aggregate": lambda rows: rows.groupBy("k").agg(listed("id"), listed("k")),
    "Arrow aggregate": lambda rows: rows.groupBy("k").agg(
        arrow_udf(lambda values: str(values.to_pylist()), "string")("id")
    ),
}  # fmt: skip
MARKS = {
    "applyInArrow": with_tables,
    "pairs of tables": with_tables,
    "Arrow aggregate": with_arrow_udf,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each type and order of zeros; other keys are between the zeros."""
    directory = tmp_path_factory.mktemp("zeros")
    for name, (first, second) in ZEROS.items():
        keys = [first, 1.5, second, 7.0, first, float("nan"), second, -1.5] * 5
        ids = list(range(len(keys)))
        for dtype, arrow_type in (("double", pa.float64()), ("float", pa.float32())):
            path = directory / dtype / f"{name}.parquet"
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"id": ids, "k": pa.array(keys, arrow_type)}), path)
    return directory


def unordered_group(key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The key without its sign, and the ids of the rows in ascending order."""
    shown = "none" if pd.isna(frame["k"]).all() else str(abs(key[0]))
    return pd.DataFrame({"key": [shown], "seen": [str(sorted(frame["id"]))]})


@pytest.mark.parametrize(("dtype", "driver_bytes"), PLACES)
@pytest.mark.parametrize("query", [pytest.param(name, marks=MARKS.get(name, ())) for name in QUERIES])
def test_zeros_are_one_key_with_spark_s_sign(
    spark: SparkSession, files: Path, query: str, dtype: str, driver_bytes: str
) -> None:
    with settings(spark, {"spark.kquery.driverBytes": driver_bytes}):
        for name in ZEROS:
            check(QUERIES[query](spark.read.parquet(str(files / dtype / f"{name}.parquet"))))


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_null_keys_beside_zeros(spark: SparkSession, files: Path, dtype: str) -> None:
    """If a partition has NULL keys, Spark's radix sort changes the order of the other rows, and so the sign of a zero key."""
    for name in ZEROS:
        rows = spark.read.parquet(str(files / dtype / f"{name}.parquet"))
        with_nulls = rows.withColumn("k", F.expr("if(id % 8 = 3, NULL, k)"))
        check(with_nulls.groupBy("k").applyInPandas(unordered_group, RETURNS))
