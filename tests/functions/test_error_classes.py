"""An accelerated query raises Spark's error; tests/sql/errors compares the class of each call."""

from __future__ import annotations

import datetime
import decimal
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan


@pytest.fixture(scope="module")
def odd(spark: SparkSession, tmp_path_factory: Any) -> Iterator[str]:
    path = str(tmp_path_factory.mktemp("odd") / "odd.parquet")
    columns = {
        "i": pa.array([2**31 - 1], pa.int32()),
        "l": pa.array([2**63 - 1]),
        "low": pa.array([-(2**63)]),
        "tiny": pa.array([-128], pa.int8()),
        "zero": pa.array([0], pa.int32()),
        "d": pa.array([1e300]),
        "nan": pa.array([float("nan")]),
        "dc": pa.array([decimal.Decimal(10**37)], pa.decimal128(38, 0)),
        "s": pa.array(["abc"]),
        "bad": pa.array(["2020-13-45"]),
        "empty": pa.array([""]),
        "a": pa.array([[1, 2]], pa.list_(pa.int32())),
        "dt": pa.array([datetime.date(2020, 1, 31)]),
    }
    table = pa.table(columns)
    pq.write_table(pa.concat_tables([table, table]), path)
    spark.read.parquet(path).createOrReplaceTempView("odd")
    yield path
    spark.catalog.dropTempView("odd")


def _condition(frame: Any) -> str | None:
    """The condition of the error that collecting raises; None for rows."""
    try:
        frame.collect()
    except Exception as error:
        named = getattr(error, "getCondition", None) or error.getErrorClass  # type: ignore[attr-defined]
        return str(named())
    return None


@pytest.mark.parametrize("call", ["to_timestamp(s)", "i + 1", "a[5]", "timestamp_seconds(l)"])
def test_an_accelerated_query_raises_what_spark_raises(call: str, spark: SparkSession, odd: str) -> None:
    frame = spark.sql(f"SELECT {call} AS r, count(*) AS n FROM odd GROUP BY 1")
    want = _condition(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kq.FallbackWarning)
        assert _condition(frame.transform(kquery_plan, when="always")) == want
    strict = frame.transform(kquery_plan, when="always", fallback="error")
    with pytest.raises(Exception, match=re.escape(f"[{want}]")):
        strict.collect()
