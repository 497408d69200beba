"""The error class of each call that fails on its data is the condition that Spark names."""

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
from kquery_spark import ExecutionContext, kquery_plan
from kquery_spark.errors import ExecutionError
from tests.conftest import SPARK_BEFORE_4_3

CALLS = (
    "to_timestamp(s)", "to_timestamp(bad)", "to_date(s)", "to_date(bad)", "to_date(s, 'yyyy-MM-dd')", "to_timestamp(bad, 'yyyy-MM-dd')",
    "unix_timestamp(s)", "to_unix_timestamp(s)", "unix_timestamp(s, 'yyyy-MM-dd')",
    "CAST(s AS INT)", "CAST(s AS BIGINT)", "CAST(s AS DOUBLE)", "CAST(s AS FLOAT)", "CAST(s AS BOOLEAN)", "CAST(s AS DATE)",
    "CAST(s AS TIMESTAMP)", "CAST(s AS TIMESTAMP_NTZ)", "CAST(s AS DECIMAL(10, 2))", "CAST(s AS SMALLINT)", "CAST(empty AS INT)",
    "CAST(l AS INT)", "CAST(i AS SMALLINT)", "CAST(i AS TINYINT)", "CAST(d AS BIGINT)", "CAST(d AS INT)", "CAST(nan AS INT)",
    "CAST(d AS DECIMAL(10, 2))", "CAST(dc AS DECIMAL(10, 2))", "CAST(dc AS BIGINT)",
    "i + 1", "l + 1", "low - 1", "i * 2", "l * 2", "-low", "abs(low)", "abs(tiny)", "low div -1",
    "1 / zero", "i % zero", "i div zero", "pmod(i, zero)", "d / zero", "dc / zero", "dc * dc",
    "a[5]", "a[-1]", "element_at(a, 5)", "element_at(a, zero)", "elt(5, 'a', 'b')", "elt(zero, 'a', 'b')",
    "make_date(2020, i, 1)", "make_timestamp(2020, i, 1, 1, 1, 1)", "make_timestamp(2020, 1, 1, 25, 1, 1)",
    "timestamp_seconds(l)", "timestamp_millis(l)", "next_day(dt, s)", "slice(a, zero, 1)", "slice(a, 1, zero - 1)",
    "round(l, -19)", "round(tiny, -2)", "ceil(d)", "floor(d)", "sum(l)", "sum(i * 1L * i * i)",
    "s + 1", "s * 2.5", "s = 1", "i = s", "s BETWEEN 1 AND 2", "abs(s)", "sqrt(s)", "sum(s)", "avg(s)", "dt = s", "dt > bad", "year(s)",
    "hour(s)", "datediff(s, dt)", "last_day(s)", "date_add(s, 1)", "nullif(i, s)", "substring(s, 'x')",
)  # fmt: skip


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


@pytest.mark.skipif(SPARK_BEFORE_4_3, reason="Spark 4.2 names some otherwise")
@pytest.mark.parametrize("call", CALLS)
def test_an_error_has_the_class_that_spark_gives_it(call: str, spark: SparkSession, odd: str) -> None:
    query = f"SELECT {call} AS r FROM odd"
    want = _condition(spark.sql(query))
    context = ExecutionContext()
    context.register_parquet("odd", odd)
    if want is None:
        assert context.sql(query).to_arrow().num_rows
        return
    with pytest.raises(ExecutionError) as raised:
        context.sql(query).to_arrow()
    assert raised.value.error_class == want


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
