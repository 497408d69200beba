"""Columns that say which file a row is from, read by the engine's own scans: ``_metadata`` and ``input_file_name()``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq
from tests.accelerate.checks import check

FORMATS = ("parquet", "orc", "csv", "json")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: Any) -> Path:
    """Three files of each format in two folders, whose path has to be escaped in a URI."""
    root = tmp_path_factory.mktemp("files") / "a b%20c+d"
    rows = spark.range(30).selectExpr("id", "id * 7 % 10 AS k", "id % 2 AS p").coalesce(1)
    for name in FORMATS:
        rows.write.partitionBy("p").format(name).save(f"{root}/{name}")
        rows.where("id < 5").write.mode("append").partitionBy("p").format(name).save(f"{root}/{name}")
    return Path(root)


def _table(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    return spark.read.schema("id bigint, k bigint, p bigint").format(name).load(str(folder / name))


@pytest.mark.parametrize("name", FORMATS)
def test_fields_of_metadata(spark: SparkSession, folder: Path, name: str) -> None:
    table = _table(spark, folder, name)
    fields = [f"_metadata.{f}" for f in ("file_path", "file_name", "file_size", "file_modification_time")]
    check(table.groupBy(*fields, "p").agg(F.sum("id"), F.count("*")), coverage=1.0)
    check(table.where("_metadata.file_size > 100 AND k > 2").groupBy("k").count(), coverage=1.0)
    check(table.groupBy("p").agg(F.max("_metadata.file_name"), F.min("_metadata.file_path")), coverage=1.0)


@pytest.mark.parametrize("name", FORMATS)
def test_the_name_of_the_input_file(spark: SparkSession, folder: Path, name: str) -> None:
    table = _table(spark, folder, name)
    check(table.groupBy(F.input_file_name()).agg(F.sum("id")), coverage=1.0)
    check(table.where("input_file_name() LIKE '%/p=1/%'").groupBy("k").count(), coverage=1.0)
    named = table.where("k > 1 AND input_file_name() LIKE '%part%'").select(
        "k", F.input_file_name().alias("f")
    )
    check(named.groupBy("f").agg(F.sum("k")), coverage=1.0)


def test_two_scans_of_one_table(spark: SparkSession, folder: Path) -> None:
    table = _table(spark, folder, "parquet")
    left = table.select("id", F.input_file_name().alias("f"))
    right = table.where("k > 1").select("id", "_metadata.file_size")
    check(left.join(right, "id").groupBy("f").agg(F.sum("file_size")), coverage=1.0)
    filtered = table.where("input_file_name() LIKE '%/p=1/%'").select("id", "k", "p")
    check(filtered.union(table).groupBy("k").count(), coverage=1.0)


def test_a_single_file_by_its_path(spark: SparkSession, folder: Path) -> None:
    file = next((folder / "parquet" / "p=0").glob("*.parquet"))
    for path in (str(file), f"file://{folder}/parquet/p=0"):
        frame = spark.read.parquet(path)
        check(frame.groupBy("_metadata.file_path", "_metadata.file_name").count(), coverage=1.0)
        check(frame.groupBy(F.input_file_name()).count(), coverage=1.0)


@pytest.mark.parametrize("text", ["_metadata", "_metadata.file_block_start", "_metadata.file_block_length"])
def test_what_depends_on_how_spark_reads_a_file_stays_with_it(
    spark: SparkSession, folder: Path, text: str
) -> None:
    report = check(_table(spark, folder, "orc").groupBy(F.expr(text)).count())
    assert 0 < report.coverage < 1


def test_a_name_is_read_right_above_the_files_only(spark: SparkSession, folder: Path) -> None:
    """Above an exchange Spark gives whatever file the task has read last, or none."""
    table = _table(spark, folder, "parquet").where("input_file_name() LIKE '%part%'")
    shuffled = table.repartition(1, "k").select("id", F.input_file_name().alias("f")).groupBy("f").count()
    assert kq.explain(shuffled).coverage < 1
    check(shuffled)
    check(spark.range(9).select(F.input_file_name().alias("f")).groupBy("f").count())


def test_a_column_of_the_name(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "own")
    spark.sql("SELECT id, named_struct('file_name', 'x') AS _metadata FROM range(5)").write.parquet(path)
    frame = spark.read.parquet(path)
    check(frame.groupBy("_metadata.file_name").agg(F.sum("id")), coverage=1.0)
