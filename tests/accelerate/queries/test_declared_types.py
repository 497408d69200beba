"""Contexts read Spark's own types from the footers of files that Spark wrote, or decline the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import Unsupported
from kquery_spark.types import names as t
from tests.conftest import SPARK_VERSION

SINCE_4_0 = pytest.mark.skipif(SPARK_VERSION < (4, 0), reason="Spark 3.5 has no such type")


def test_day_time_intervals_in_parquet_files(spark: Any, tmp_path: Path) -> None:
    values = "INTERVAL '1 02:03:04.5' DAY TO SECOND, INTERVAL '-1 00:00:00' DAY TO SECOND"
    path = str(tmp_path / "t")
    rows = spark.sql(f"SELECT posexplode(array({values}, NULL)) AS (n, v)").coalesce(1)
    rows.write.parquet(path)
    context = kq.ExecutionContext(spark)
    context.register_parquet("t", path)
    assert context.table("t").schema == pa.schema({"n": pa.int32(), "v": t.DAY_TIME})
    query = "SELECT n, -v > v AS a, abs(v) = v AS b, max(v) OVER () = v AS c FROM t ORDER BY v DESC"
    spark.read.parquet(path).createOrReplaceTempView("t")
    assert context.sql(query).to_spark().collect() == spark.sql(query).collect()


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("INTERVAL '1' DAY", "interval day, which is not supported"),
        ("INTERVAL '1-2' YEAR TO MONTH", "interval year to month, which is not supported"),
        ("INTERVAL '1' YEAR", "interval year, which is not supported"),
        ("array(INTERVAL '1' DAY)", "interval day"),
        ("map('a', INTERVAL '1-1' YEAR TO MONTH)", "interval year to month"),
        ("named_struct('a', named_struct('b', INTERVAL '1-1' YEAR TO MONTH))", "interval year to month"),
        pytest.param("'a' COLLATE UTF8_LCASE", "a collation", marks=SINCE_4_0),
        pytest.param("array('a' COLLATE UTF8_LCASE)", "a collation", marks=SINCE_4_0),
        pytest.param("parse_json('[1]')", "variant, which is not supported", marks=SINCE_4_0),
        pytest.param("array(parse_json('[1]'))", "variant, which is not supported", marks=SINCE_4_0),
    ],
)
def test_other_types_of_spark_are_declined(spark: Any, tmp_path: Path, expression: str, reason: str) -> None:
    spark.sql(f"SELECT {expression} AS v, 1 AS n").write.parquet(str(tmp_path / "t"))
    with pytest.raises(Unsupported, match=f"the Parquet column v has .*{reason}"):
        kq.ExecutionContext().register_parquet("t", str(tmp_path / "t"))


@pytest.mark.parametrize(
    "expression",
    [
        "array(INTERVAL '1' DAY)",
        "map(INTERVAL '1-1' YEAR TO MONTH, 1)",
        "named_struct('a', named_struct('b', INTERVAL '1' DAY))",
        "array(TIMESTAMP_NTZ'2024-01-31 00:00:00')",
    ],
)
def test_intervals_and_wall_clock_times_inside_of_orc_columns_are_declined(
    spark: Any, tmp_path: Path, expression: str
) -> None:
    spark.sql(f"SELECT {expression} AS v").write.orc(str(tmp_path / "t"))
    with pytest.raises(Unsupported, match="the ORC column v has a part of type"):
        kq.ExecutionContext().register_orc("t", str(tmp_path / "t"))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", '{"fields": 1}', '{"fields": [{}]}', '{"fields": ["a"]}']
)
def test_a_malformed_schema_in_the_footer_is_ignored(spark: Any, tmp_path: Path, text: str) -> None:
    schema = pa.schema({"a": pa.int32()}, metadata={"org.apache.spark.sql.parquet.row.metadata": text})
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [1]}, schema=schema), path)
    context = kq.ExecutionContext()
    context.register_parquet("t", path)
    assert context.table("t").to_arrow().to_pydict() == {"a": [1]}
    assert [row.a for row in spark.read.parquet(path).collect()] == [1], json.dumps(text)
