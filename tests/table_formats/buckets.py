"""What the tests of object stores that Spark only reads ask: Spark writes to the local disk, and a copy goes to the bucket."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kquery_spark as kq
from benchmarks import tpch
from kquery_spark import kquery_plan
from tests.accelerate.checks import check
from tests.conftest import SPARK_VERSION
from tests.table_formats.queries import GROUPED, ROWS, whole

#: Writes the files of a directory below a path of the bucket.
Upload = Callable[[Path, str], None]
_OF_OLDER_RELEASES = (1, 3, 5, 6, 13, 18)


def upload_rows(spark: Any, upload: Upload, directory: Path) -> None:
    """Write the rows of ``ROWS`` in each format, and in directories that are partitions."""
    rows = spark.sql(ROWS)
    rows.repartition(3).write.partitionBy("k").parquet(str(directory / "a b/plain"))
    for name in ("orc", "csv", "json"):
        rows.repartition(2).write.format(name).save(str(directory / name))
    upload(directory, "")


def check_formats(spark: Any, bucket: str) -> None:
    """Queries over each format are whole and give Spark's rows."""
    plain = spark.read.parquet(f"{bucket}/a b/plain")
    plain.createOrReplaceTempView("in_bucket")
    whole(spark, GROUPED.format(t="in_bucket"))
    whole(spark, "SELECT count(*), sum(d) FROM in_bucket WHERE k > 3 AND id < 900")
    whole(
        spark,
        "SELECT a.k, count(*) FROM in_bucket a JOIN in_bucket b ON a.id = b.id + 1 GROUP BY a.k",
    )
    for name in ("orc", "csv", "json"):
        frame = spark.read.schema("id bigint, k bigint, s string, d double").format(name)
        check(frame.load(f"{bucket}/{name}").groupBy("k").count(), coverage=1.0)


def check_tpch(spark: Any, bucket: str, data: Path, upload: Upload) -> None:
    """Queries derived from TPC-H are whole and equal; of a release of Spark other than the newest a few."""
    upload(data, "tpch")
    for table in tpch.TABLES:
        spark.read.parquet(f"{bucket}/tpch/{table}.parquet").createOrReplaceTempView(table)
    for number in tpch.QUERIES if SPARK_VERSION >= (4, 3) else _OF_OLDER_RELEASES:
        whole(spark, tpch.query(number))


def check_replaced(spark: Any, bucket: str, directory: Path, upload: Upload) -> None:
    """A file that is replaced between planning and reading is an error; a plan after that sees the new one."""

    def write(limit: int) -> None:
        path = directory / f"of-{limit}"
        spark.sql(ROWS).where(f"id < {limit}").coalesce(1).write.parquet(str(path))
        part = next(path.glob("part-*"))
        part.rename(path / "part-0.parquet")
        for file in path.iterdir():
            if file.name != "part-0.parquet":
                file.unlink()
        upload(path, "replaced")

    def counted() -> Any:
        frame = spark.read.parquet(f"{bucket}/replaced").groupBy("k").count()
        return frame.transform(kquery_plan, when="always", fallback="error")

    write(2000)
    fast = counted()
    assert sum(row[1] for row in fast.collect()) == 2000
    write(100)
    with pytest.raises(Exception, match="has changed since the query was planned"):
        fast.collect()
    assert sum(row[1] for row in counted().collect()) == 100


def check_reason(spark: Any, bucket: str, setting: str, value: str, sentence: str) -> None:
    """With a setting that Arrow cannot follow the scan falls back to Spark, with a sentence."""
    frame = spark.read.parquet(f"{bucket}/a b/plain").groupBy("k").count()
    spark.conf.set(setting, value)
    try:
        explained = kq.explain(frame)
    finally:
        spark.conf.unset(setting)
    assert explained.coverage < 1
    assert any(sentence in reason for _, reason in explained.reasons), explained.reasons


def check_context(spark: Any, bucket: str) -> None:
    """A context on Spark reads as Spark does, without options."""
    ctx = kq.ExecutionContext(spark)
    ctx.register_parquet("t", f"{bucket}/a b/plain")
    assert ctx.sql("SELECT count(*) AS n FROM t").to_arrow().to_pylist() == [{"n": 2000}]
    assert ctx.sql("SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY k").to_arrow().num_rows == 7


def check_hidden(spark: Any, bucket: str, secret: str) -> None:
    """Neither explain nor Spark's plans nor its event log show a secret."""
    frame = spark.read.parquet(f"{bucket}/a b/plain").groupBy("k").count()
    fast = frame.transform(kquery_plan, when="always")
    explained = kq.explain(frame)
    strings = [str(explained), explained._repr_html_(), fast._jdf.queryExecution().toString()]
    fast.collect()
    logs = [file for file in Path(spark.conf.get("spark.eventLog.dir")).rglob("*") if file.is_file()]
    assert logs
    strings += [log.read_text(errors="replace") for log in logs]
    assert not any(secret in text for text in strings)
