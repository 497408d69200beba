"""Run by test_full_disk.py: queries whose local directories are full, read-only, gone, or only partly usable.

The rows compress well, so Spark's shuffle files fit where the engine's spill files do not. Prints one line of JSON for each
case: what the engine and plain Spark end with, the engine's warnings, and what is left on the disk afterwards.
"""

from __future__ import annotations

import json
import os
import re
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
from kquery_spark.runtime.spark import driver
from tests.runtime.spilling import remaining_scratch_files

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
    """The rows, or the classes of the error and of its causes."""
    try:
        return str([tuple(row) for row in action()])
    except Exception as error:
        causes = sorted(set(re.findall(r"(\w+(?:Exception|Error)): ", str(error))))
        return f"{type(error).__name__}: {', '.join(causes)}"


def report(
    spark: SparkSession, name: str, data: str, disk: Path, fault: Callable[[], None] = lambda: None
) -> None:
    """Print what the engine and plain Spark end with, and the engine's scratch files that are left.

    fault: happens after the query is planned.
    """
    spark.read.parquet(data).createOrReplaceTempView("t")
    plain = spark.sql(QUERY)
    fast = kquery_plan(plain, when="always")
    fault()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", kq.FallbackWarning)
        engine = outcome(fast.collect)
    remaining = remaining_scratch_files(str(disk))
    said = [str(w.message) for w in caught if w.category is kq.FallbackWarning]
    say(name, engine=engine, spark=outcome(plain.collect), warnings=said, left=remaining)


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
    report(spark, "full", data, disk)

    tempfile.tempdir = str(disk)  # of this process, whose threads are to run the query
    driver.MAX_DRIVER_SECONDS = 600
    for key, value in IN_DRIVER.items():
        spark.conf.set(key, value)
    report(spark, "full, in the driver", data, disk)
    for key in IN_DRIVER:
        spark.conf.set(key, "0")
    context = kq.ExecutionContext(config=EngineConfig(parallelism=1, memory_bytes=_MEGABYTE))
    context.register_parquet("t", data)
    try:
        said = str(context.sql(QUERY).to_arrow().to_pylist())
    except KQueryError as error:
        said = f"{type(error).__name__}: {error}"
    say("full, in a context", engine=said, left=remaining_scratch_files(str(disk)))
    tempfile.tempdir = None

    report(spark, "removed", data, disk, lambda: shutil.rmtree(next(disk.glob("blockmgr-*"))))
    spark.stop()

    spark = session(disk, other)
    report(spark, "full, and another directory", data, disk)
    spark.stop()

    spark = session(disk)
    report(spark, "read-only", data, disk, lambda: mount("-o", "remount,ro", str(disk)))
    mount("-o", "remount,rw", str(disk))
    spark.stop()
    say("stop", left=remaining_scratch_files(str(disk)) + remaining_scratch_files(str(other)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
