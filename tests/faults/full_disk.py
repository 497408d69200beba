"""Run by test_full_disk.py: queries whose local directories are full, read-only, gone, or only partly usable.

The rows compress well, so Spark's shuffle files fit where the engine's spill files do not. Prints one line of JSON for each
case: what the engine and plain Spark end with, the engine's warnings, and what is left on the disk afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import KQueryError

ROWS = 60_000
_MEGABYTE = 1 << 20
QUERY = "SELECT sum(n) AS n, max(s) AS s FROM (SELECT s, row_number() OVER (PARTITION BY k ORDER BY s, k) AS n FROM t) AS u"
IN_DRIVER = {"spark.kquery.driverBytes": "64m", "spark.kquery.threadBytes": "64m"}


def write_table(directory: str) -> None:
    table = pa.table({"k": [1] * ROWS, "s": [f"{'x' * 300}{i * 7919 % ROWS:06}" for i in range(ROWS)]})
    pq.write_table(table, f"{directory}/t.parquet", row_group_size=ROWS // 4)


def session(*local: Path) -> SparkSession:
    return (
        kq.configure(SparkSession.builder)
        .master("local[1]")
        .config("spark.local.dir", ",".join(map(str, local)))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.kquery.memoryBytes", "1m")
        .config("spark.kquery.smallBytes", "1g")
        .config("spark.kquery.driverBytes", "0")
        .getOrCreate()
    )


def outcome(action: Callable[[], list[Any]]) -> str:
    """The rows, or the first line of the error that says what failed."""
    try:
        return str([tuple(row) for row in action()])
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if "Error" in line or "Exception" in line]
        return f"{type(error).__name__}: {lines[-1] if lines else error}"[:400]


def used(disk: Path) -> int:
    status = os.statvfs(disk)
    return (status.f_blocks - status.f_bfree) * status.f_bsize


class Case:
    """Runs the query by the engine and by plain Spark and prints what happened."""

    def __init__(self, spark: SparkSession, data: str, disk: Path) -> None:
        self._spark = spark
        self._disk = disk
        spark.read.parquet(data).createOrReplaceTempView("t")

    def report(self, name: str) -> None:
        before = used(self._disk)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", kq.FallbackWarning)
            engine = outcome(lambda: kquery_plan(self._spark.sql(QUERY), when="always").collect())
        left = used(self._disk) - before
        spark = outcome(lambda: self._spark.sql(QUERY).collect())
        said = [str(w.message) for w in caught if w.category is kq.FallbackWarning]
        say(name, engine=engine, spark=spark, warnings=said, left=left)


def say(name: str, **facts: object) -> None:
    print(json.dumps({"case": name, **facts}), flush=True)


def mount(*options: str) -> None:
    subprocess.run(["mount", *options], check=True)


def main(data: str, disk: Path, other: Path) -> None:
    write_table(data)
    free = 8 * _MEGABYTE
    with open(disk / "filler", "wb") as filler:
        filler.write(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize - free))

    spark = session(disk)
    Case(spark, data, disk).report("full")

    tempfile.tempdir = str(disk)  # of this process, whose threads are to run the query
    for key, value in IN_DRIVER.items():
        spark.conf.set(key, value)
    Case(spark, data, disk).report("full, in the driver")
    for key in IN_DRIVER:
        spark.conf.set(key, "0")
    context = kq.ExecutionContext(config=EngineConfig(parallelism=1, memory_bytes=_MEGABYTE))
    context.register_parquet("t", data)
    before = used(disk)
    try:
        said = str(context.sql(QUERY).to_arrow().to_pylist())
    except KQueryError as error:
        said = f"{type(error).__name__}: {error}"
    say("full, in a context", engine=said, left=used(disk) - before)
    tempfile.tempdir = None

    shutil.rmtree(next(disk.glob("blockmgr-*")))
    Case(spark, data, disk).report("removed")
    spark.stop()

    spark = session(disk, other)
    Case(spark, data, disk).report("full, and another directory")
    spark.stop()

    spark = session(disk)
    mount("-o", "remount,ro", str(disk))
    Case(spark, data, disk).report("read-only")
    mount("-o", "remount,rw", str(disk))
    spark.stop()
    say("stop", left=sorted(p.name for d in (disk, other) for p in d.rglob("*kquery*")))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
