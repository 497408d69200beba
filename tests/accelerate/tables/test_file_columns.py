"""Columns that say which file a row is from, read by the engine's own scans: ``_metadata`` and ``input_file_name()``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq
from tests.accelerate.checks import check
from tests.conftest import settings

FORMATS = ("parquet", "orc", "csv", "json")


@pytest.fixture(scope="module")
def directory(spark: SparkSession, tmp_path_factory: Any) -> Path:
    """Three files of each format in two directories, whose path has to be escaped in a URI."""
    root = tmp_path_factory.mktemp("files") / "a b%20c+d"
    rows = spark.range(30).selectExpr("id", "id * 7 % 10 AS k", "id % 2 AS p").coalesce(1)
    for name in FORMATS:
        rows.write.partitionBy("p").format(name).save(f"{root}/{name}")
        rows.where("id < 5").write.mode("append").partitionBy("p").format(name).save(f"{root}/{name}")
    return Path(root)


def _table(spark: SparkSession, directory: Path, name: str) -> DataFrame:
    return spark.read.schema("id bigint, k bigint, p bigint").format(name).load(str(directory / name))


@pytest.mark.parametrize("name", FORMATS)
def test_fields_of_metadata(spark: SparkSession, directory: Path, name: str) -> None:
    table = _table(spark, directory, name)
    fields = [f"_metadata.{f}" for f in ("file_path", "file_name", "file_size", "file_modification_time")]
    check(table.groupBy(*fields, "p").agg(F.sum("id"), F.count("*")), coverage=1.0)
    check(table.where("_metadata.file_size > 100 AND k > 2").groupBy("k").count(), coverage=1.0)
    check(table.groupBy("p").agg(F.max("_metadata.file_name"), F.min("_metadata.file_path")), coverage=1.0)


@pytest.mark.parametrize("name", FORMATS)
def test_the_name_of_the_input_file(spark: SparkSession, directory: Path, name: str) -> None:
    table = _table(spark, directory, name)
    check(table.groupBy(F.input_file_name()).agg(F.sum("id")), coverage=1.0)
    check(table.where("input_file_name() LIKE '%/p=1/%'").groupBy("k").count(), coverage=1.0)
    named = table.where("k > 1 AND input_file_name() LIKE '%part%'").select(
        "k", F.input_file_name().alias("f")
    )
    check(named.groupBy("f").agg(F.sum("k")), coverage=1.0)


def test_two_scans_of_one_table(spark: SparkSession, directory: Path) -> None:
    table = _table(spark, directory, "parquet")
    left = table.select("id", F.input_file_name().alias("f"))
    right = table.where("k > 1").select("id", "_metadata.file_size")
    check(left.join(right, "id").groupBy("f").agg(F.sum("file_size")), coverage=1.0)
    filtered = table.where("input_file_name() LIKE '%/p=1/%'").select("id", "k", "p")
    check(filtered.union(table).groupBy("k").count(), coverage=1.0)


def test_a_single_file_by_its_path(spark: SparkSession, directory: Path) -> None:
    file = next((directory / "parquet" / "p=0").glob("*.parquet"))
    for path in (str(file), f"file://{directory}/parquet/p=0"):
        frame = spark.read.parquet(path)
        check(frame.groupBy("_metadata.file_path", "_metadata.file_name").count(), coverage=1.0)
        check(frame.groupBy(F.input_file_name()).count(), coverage=1.0)


BLOCKS = (
    *("_metadata.file_block_start", "_metadata.file_block_length", "_metadata"),
    *("input_file_block_start()", "input_file_block_length()"),
)


@pytest.mark.parametrize("name", FORMATS)
def test_files_that_spark_does_not_cut_are_blocks(spark: SparkSession, directory: Path, name: str) -> None:
    table = _table(spark, directory, name)
    check(table.where("k > 2").groupBy(*BLOCKS[:2]).agg(F.sum("id")), coverage=1.0)
    check(table.where("_metadata.file_block_start = 0").selectExpr("id", "_metadata"), coverage=1.0)
    whole = table.selectExpr("p", "_metadata AS m", "_metadata.file_size AS size").where("size > 0")
    check(whole.groupBy("p").agg(F.max("m.file_name"), F.sum("size")), coverage=1.0)
    check(table.select("_metadata", "_metadata.file_name", "*"), coverage=1.0)
    named = table.where("k > 1 AND input_file_block_start() = 0").selectExpr(
        "k", *(f"{b} AS b{i}" for i, b in enumerate(BLOCKS))
    )
    check(named.groupBy("b3").agg(F.sum("b1"), F.max("b4"), F.max("b2.file_size")), coverage=1.0)


def test_blocks_of_files_that_spark_may_cut_stay_with_it(spark: SparkSession, directory: Path) -> None:
    table = _table(spark, directory, "parquet")
    for setting in ("openCostInBytes", "maxPartitionBytes"):
        with settings(spark, {f"spark.sql.files.{setting}": "100b"}):
            for text in BLOCKS:
                report = check(table.selectExpr("id % 3 AS m", f"{text} AS t").groupBy("m").agg(F.max("t")))
                assert 0 < report.coverage < 1


def test_numbers_of_rows(spark: SparkSession, directory: Path, tmp_path: Path) -> None:
    """Of files with many row groups and pages, below filters, joins and limits, in partitions and in buckets."""
    rows = spark.range(20000).selectExpr(
        "id", "id % 7 AS k", "if(id % 5 = 0, NULL, concat('s', id % 100)) AS s"
    )
    written = rows.repartition(2).write.option("parquet.block.size", "20000")
    written.option("parquet.page.size", "2000").parquet(str(tmp_path / "many"))
    many = spark.read.parquet(str(tmp_path / "many"))
    number = F.col("_metadata.row_index").alias("n")
    check(many.select("id", number).where("n % 1000 < 3 AND k > 2"), coverage=1.0)
    check(many.where("_metadata.row_index BETWEEN 4990 AND 5010").select("id", number), coverage=1.0)
    check(many.where("s = 's7' AND id > 15000").groupBy("k").agg(F.sum("_metadata.row_index")), coverage=1.0)
    check(many.groupBy("_metadata.file_name").agg(F.max("_metadata.row_index"), F.count("*")), coverage=1.0)
    check(many.select(number).orderBy(F.desc("n")).limit(5), coverage=1.0)
    check(many.where("k = 1").select("_metadata", "s"), coverage=1.0)
    at = many.select("id", F.col("_metadata.file_name").alias("f"), number)
    check(
        at.join(at.where("n < 500").withColumnRenamed("id", "other"), ["f", "n"])
        .groupBy()
        .agg(F.sum("other"))
    )
    check(
        _table(spark, directory, "parquet").where("p = 1").groupBy("p").agg(F.sum("_metadata.row_index")),
        coverage=1.0,
    )
    try:
        rows.write.bucketBy(4, "k").saveAsTable("numbered")
        check(
            spark.table("numbered").where("k = 3").groupBy("k").agg(F.sum("_metadata.row_index")),
            coverage=1.0,
        )
    finally:
        spark.sql("DROP TABLE IF EXISTS numbered")


def test_a_name_is_read_right_above_the_files_only(spark: SparkSession, directory: Path) -> None:
    """Above an exchange Spark gives whatever file the task has read last, or none."""
    table = _table(spark, directory, "parquet").where("input_file_name() LIKE '%part%'")
    shuffled = table.repartition(1, "k").select("id", F.input_file_name().alias("f")).groupBy("f").count()
    assert kq.explain(shuffled).coverage < 1
    check(shuffled)
    check(spark.range(9).select(F.input_file_name().alias("f")).groupBy("f").count())


def test_a_column_of_the_name(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "own")
    spark.sql("SELECT id, named_struct('file_name', 'x') AS _metadata FROM range(5)").write.parquet(path)
    frame = spark.read.parquet(path)
    check(frame.groupBy("_metadata.file_name").agg(F.sum("id")), coverage=1.0)
