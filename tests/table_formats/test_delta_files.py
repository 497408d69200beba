"""Files of Delta tables that are copied, removed, damaged, or vacuumed while a query reads them."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
import warnings
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import FallbackWarning
from kquery_spark.spark_bridge.session.failures import error_class
from tests.accelerate.checks import check
from tests.conftest import settings
from tests.table_formats.queries import ROWS


def remove_old_files(spark: SparkSession, path: str) -> None:
    """Vacuum a table; only files of the newest version remain."""
    changed = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # the tasks that list files; the default is 10,000
    }
    with settings(spark, changed):
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")


def error_of(frame: DataFrame) -> tuple[tuple[str | None, str], str]:
    """Return Spark's class of an action's error with the classes of its causes, and the message."""
    with pytest.raises(Exception) as raised:
        frame.collect()
    message = str(raised.value)
    causes = re.findall(r"(?m)^Caused by: ([\w.$]+)", message)
    return (error_class(raised.value), " ".join([type(raised.value).__name__, *causes])), message


def test_copies_of_tables_whose_files_are_newer_than_the_log_says(spark, table, tmp_path):
    path = tmp_path / "original"
    spark.sql(ROWS).write.format("delta").save(str(path))
    copy = tmp_path / "copy"
    shutil.copytree(path, copy, copy_function=shutil.copy)
    later = time.time() + 1000
    for file in copy.glob("*.parquet"):
        os.utime(file, (later, later))
    check(spark.read.format("delta").load(str(copy)).groupBy("k").count(), coverage=1.0)


def test_vacuumed_files_are_sparks_error(spark, tmp_path):
    path = tmp_path / "t"
    spark.sql(ROWS).write.format("delta").save(str(path))
    next(path.glob("*.parquet")).unlink()
    frame = spark.read.format("delta").load(str(path)).groupBy("k").count()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception, match="parquet"):
            frame.transform(kquery_plan, when="always").collect()


@pytest.mark.parametrize("way", ["kquery_plan", "enable"])
def test_a_table_that_is_vacuumed_while_it_is_read(spark: SparkSession, tmp_path: Path, way: str) -> None:
    """The rows of the planned version, or Spark's error, which names a file."""
    for number, delay in enumerate((0.0, 0.05, 0.2, 0.5)):
        path = str(tmp_path / f"t{number}")
        rows = spark.range(40_000).selectExpr("id", "id % 11 AS k")
        rows.repartition(20).write.format("delta").save(path)
        rows.limit(5).write.format("delta").mode("overwrite").save(path)
        query = spark.read.format("delta").option("versionAsOf", 0).load(path).groupBy("k").agg({"id": "sum"})
        expected = sorted(query.collect())
        vacuum = threading.Timer(delay, remove_old_files, [spark, path])
        frame = query.transform(kquery_plan, when="always") if way == "kquery_plan" else query
        if way == "enable":
            kq.enable(spark, when="always")
        vacuum.start()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FallbackWarning)
                found = sorted(frame.collect())
        except Exception as error:
            assert error_class(error) == "FAILED_READ_FILE.FILE_NOT_EXIST", error
            assert f"t{number}/" in str(error)
        else:
            assert found == expected
        finally:
            kq.disable(spark)
            vacuum.join()
        assert len(list(Path(path).glob("*.parquet"))) == 1


@pytest.mark.parametrize("damage", ["truncated", "changed", "gone"])
def test_a_damaged_vector_is_an_error(spark, tmp_path, damage):
    path = str(tmp_path / "t")
    frame = spark.sql(ROWS).coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true")
    frame.save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 20 = 3")
    (file,) = Path(path).glob("deletion_vector*.bin")
    data = file.read_bytes()
    if damage == "truncated":
        file.write_bytes(data[:-20])
    elif damage == "changed":
        file.write_bytes(data[:30] + bytes([data[30] ^ 255]) + data[31:])
    else:
        file.unlink()
    crc = file.with_name(f".{file.name}.crc")
    crc.unlink(missing_ok=True)
    query = spark.read.format("delta").load(path).groupBy("k").count()
    expected = error_of(query)
    assert re.search(r"FAILED_READ_FILE|deletion_vector|EOFException|CHECKSUM", expected[1])
    with pytest.warns(FallbackWarning, match=rf"deletion vector .*{re.escape(file.name)}"):
        actual = error_of(query.transform(kquery_plan, when="always"))
    assert actual[0] == expected[0]
