"""Filters on partition columns alone: Spark decides them for every directory before it reads a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.spark_bridge.session.failures import error_class
from tests.accelerate.checks import check


def table(spark: Any, directory: Path, directories: dict[str, list[int]]) -> Any:
    """Files with a column v in directories named by a string k."""
    for name, rows in directories.items():
        (directory / f"k={name}").mkdir(parents=True)
        pq.write_table(pa.table({"v": pa.array(rows, pa.int64())}), directory / f"k={name}" / "0.parquet")
    return spark.read.schema("v bigint, k string").parquet(str(directory))


@pytest.mark.parametrize(
    "conditions",
    [
        ["k > 0"],
        ["v > 100 AND k > 0"],
        ["v > 100", "k > 0"],
        ["v > 100 AND CAST(k AS INT) = 1"],
        ["v IS NULL AND 10 / CAST(length(k) - 1 AS INT) = 1"],
        ["k <> 'y' AND CAST(k AS INT) > 0"],
        ["k IS NOT NULL AND (k LIKE '1%' OR CAST(k AS INT) > 0)"],
    ],
)
@pytest.mark.parametrize("rows", [[], [5]])
def test_an_error_for_a_directory_is_raised_whatever_is_in_it(spark, tmp_path, conditions, rows):
    frame = table(spark, tmp_path / "t", {"1": [5], "x": rows})
    for condition in conditions:
        frame = frame.where(condition)
    kinds = set()
    for each in (frame, frame.transform(kquery_plan, when="always")):
        with pytest.raises(Exception) as raised:
            each.collect()
        kinds.add(error_class(raised.value))
    assert len(kinds) == 1 and kinds <= {"CAST_INVALID_INPUT", "DIVIDE_BY_ZERO"}


@pytest.mark.parametrize(
    "condition",
    [
        "k <> 'x' AND CAST(k AS INT) > 0",
        "k = 'x' OR CAST(k AS INT) > 1",
        "CASE WHEN k = 'x' THEN false ELSE CAST(k AS INT) > 1 END",
        "coalesce(k = 'x', CAST(k AS INT) > 1)",
        "try_cast(k AS INT) > 0",
        "k NOT IN ('x') AND k IN ('1', '12') AND 10 / CAST(k AS INT) > 1",
    ],
)
def test_an_error_that_no_directory_causes_is_none(spark, tmp_path, condition):
    frame = table(spark, tmp_path / "t", {"1": [5, 6], "x": [7], "12": [8]})
    check(frame.where(condition), coverage=1.0)


@pytest.mark.parametrize(
    "condition",
    [
        "k LIKE '%1'",
        "NOT startswith(k, 'b')",
        "substring(k, 2, 1) = '1'",
        "upper(k) IN ('A1', 'C1')",
        "coalesce(k, '') = 'a1'",
        "k <> 'b2'",
        "length(k) = 2 AND k RLIKE '1$'",
        "CASE WHEN k > 'b' THEN false ELSE true END",
    ],
)
def test_other_conditions_do_not_see_the_rows_of_directories_left_out(spark, tmp_path, condition):
    for name, text in (("a1", "1"), ("b2", "x")):
        (tmp_path / f"k={name}").mkdir()
        pq.write_table(pa.table({"s": [text]}), tmp_path / f"k={name}" / "0.parquet")
    frame = spark.read.parquet(str(tmp_path)).where(f"CAST(s AS INT) = 1 AND {condition}")
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    assert fast.collect() == frame.collect() != []


def test_a_table_of_very_many_directories_is_sparks_where_the_filter_can_fail(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("kquery_spark.logical.partition_conditions._MAX_PARTITIONS", 2)
    frame = table(spark, tmp_path / "t", {"1": [5], "2": [6], "3": [7]})
    assert check(frame.where("k LIKE '%1'")).coverage == 1.0
    assert check(frame.where("CAST(k AS INT) > 1")).coverage < 1.0


@pytest.mark.parametrize(
    "condition",
    [
        "k = 'b'",
        "k IN ('b', 'c') AND k <> 'c' AND v > 1",
        "k > 'a' AND length(k) = 1 AND k < 'c'",
        "NOT (k = 'a' OR k = 'c') AND k IS NOT NULL",
        "k = 'b' AND v = (SELECT max(id) + 5 FROM range(1))",
        "CASE WHEN k = 'a' THEN false ELSE k = 'b' END",
    ],
)
def test_nothing_looks_at_the_files_of_directories_that_are_left_out(spark, tmp_path, condition):
    frame = table(spark, tmp_path / "t", {"a": [1], "b": [5, 6], "c": [7], "__HIVE_DEFAULT_PARTITION__": [8]})
    for name in ("a", "c", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / "t" / f"k={name}" / "0.parquet").write_bytes(b"no Parquet file")
    check(frame.where(condition).groupBy("k").sum("v"), coverage=1.0)
    check(frame.select("v", "k").where(condition).selectExpr("v + 1 AS w"), coverage=1.0)
    assert "files pruned=3; splits=1" in str(kq.explain(frame.where(condition).groupBy("k").sum("v")))


@pytest.mark.parametrize(
    "condition", ["k = 'b' OR v = 1", "k = v", "k IS NULL OR rand() < 2", "k <=> NULL", "k IS NULL"]
)
def test_files_that_other_conditions_may_need_are_read(spark, tmp_path, condition):
    frame = table(spark, tmp_path / "t", {"a": [1], "2": [2, 3], "__HIVE_DEFAULT_PARTITION__": [8]})
    with_mode = frame.where(condition.replace("k = v", "try_cast(k AS INT) = v"))
    check(with_mode.groupBy("k").sum("v"))


@pytest.mark.parametrize("kind", ["date", "timestamp", "decimal(5,2)", "boolean", "double", "bigint"])
def test_directories_of_all_types(spark, tmp_path, kind):
    values = {"date": "date'2020-01-01' + CAST(id AS INT)", "timestamp": "timestamp_seconds(id)"}
    key = values.get(kind, "id % 2 = 1" if kind == "boolean" else f"CAST(CAST(id AS STRING) AS {kind})")
    spark.sql(f"SELECT id, {key} AS k FROM range(3)").write.partitionBy("k").parquet(str(tmp_path / "t"))
    frame = spark.read.schema(f"id bigint, k {kind}").parquet(str(tmp_path / "t"))
    expected = spark.sql(f"SELECT {key} AS k FROM range(1, 2)").collect()[0][0]
    check(frame.where(frame.k == expected).selectExpr("sum(id)"), coverage=1.0)
    check(frame.where(frame.k != expected).selectExpr("sum(id)"), coverage=1.0)


def test_joins_of_different_directories_of_one_table(spark, tmp_path):
    frame = table(spark, tmp_path / "t", {"a": [1, 2], "b": [2, 3], "c": [3, 4]})
    first, second = (frame.where(f"k = '{name}'").selectExpr("v", f"k AS k{name}") for name in "ab")
    check(first.join(second, "v"), coverage=1.0)
    check(first.join(first.withColumnRenamed("ka", "kb"), "v"), coverage=1.0)
    check(frame.join(second, "v").groupBy("k").count(), coverage=1.0)
    check(first.union(second).union(frame.where("k = 'd'")).groupBy("v").count(), coverage=1.0)


def test_facts_of_files_in_some_directories(spark, tmp_path):
    frame = table(spark, tmp_path / "t", {"a": [1, 2], "b": [2, 3]})
    check(frame.where("k = 'b'").selectExpr("v", "_metadata.file_name", "_metadata.row_index"), coverage=1.0)
    check(frame.where("k = 'b' AND _metadata.file_size > 0").selectExpr("input_file_name()", "k"))


@pytest.mark.parametrize("condition", ["CAST(k AS STRING) = '-0.0'", "k = 0", "1 / k IS NULL OR k > 0"])
def test_directories_of_both_zeros(spark, tmp_path, condition):
    table(spark, tmp_path / "t", {"0.0": [1], "-0.0": [2], "1.0": [3]})
    frame = spark.read.schema("v bigint, k double").parquet(str(tmp_path / "t"))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        check(frame.where(condition).select("v"))
        check(frame.where(condition).groupBy("v").count())
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
