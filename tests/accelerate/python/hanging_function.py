"""Run by test_hanging_functions.py: cancels queries whose Python function never returns. Prints one line of JSON a query.

Arguments: ``plain`` (Spark alone), ``enable`` or ``plan``, and a directory for the table.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import pandas_udf, udf

import kquery_spark as kq
from kquery_spark.accelerate.execution.dataframe import execution_of

MODE, TABLE = sys.argv[1:]
WAIT_SECONDS = 60.0


def hanging(table: str) -> Any:
    """A function that says where it hangs, then hangs."""

    @udf("bigint")
    def hang(v: int) -> int:
        if v == 7:
            with open(f"{table}.pid", "a") as file:
                file.write(f"{os.getpid()}\n")
            while True:
                time.sleep(1000)
        return v

    return hang


def hanging_batches(table: str) -> Any:
    """The same of batches."""

    @pandas_udf("bigint")
    def hang(v: pd.Series) -> pd.Series:
        with open(f"{table}.pid", "a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(1000)
        return v

    return hang


def pids() -> list[int]:
    """The processes in which the function hangs."""
    try:
        with open(f"{TABLE}.pid") as file:
            return [int(line) for line in file.read().split()]
    except FileNotFoundError:
        return []


def is_alive(pid: int) -> bool:
    """Whether a process runs that is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], bool]) -> float:
    """Seconds until a condition holds."""
    began = time.monotonic()
    while not condition() and time.monotonic() - began < WAIT_SECONDS:
        time.sleep(0.02)
    return round(time.monotonic() - began, 2)


def cancelled(spark: SparkSession, frame: DataFrame, name: str, cancel: Callable[[], Any]) -> None:
    """Run the query, cancel it once its function hangs, and print what happened."""
    if os.path.exists(f"{TABLE}.pid"):
        os.unlink(f"{TABLE}.pid")
    moment: list[float] = []

    def watch() -> None:
        until(lambda: bool(pids()))
        moment.append(time.monotonic())
        cancel()

    fast = frame.transform(kq.kquery_plan, when="always") if MODE == "plan" else frame
    spark.sparkContext.setJobGroup("hanging", "hanging", interruptOnCancel=False)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        fast.collect()
        error = "none"
    except KeyboardInterrupt:
        error = "KeyboardInterrupt"
    except BaseException as raised:
        error = "cancelled" if "ancel" in str(raised) or "stopped" in str(raised) else repr(raised)[:300]
    assert moment, error  # the query ended before its function hung
    ended = time.monotonic() - moment[0]
    thread.join()
    workers = until(lambda: not any(map(is_alive, pids())))
    outcome = {"cancel": name, "error": error, "seconds": round(ended, 2), "worker_seconds": workers}
    print(json.dumps({**outcome, "alive": sum(map(is_alive, pids()))}), flush=True)


def main() -> None:
    """Cancel in four ways; the last one stops the session."""
    builder = kq.configure(SparkSession.builder).master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    context = spark.sparkContext
    spark.range(20).selectExpr("id AS v").repartition(2).write.mode("overwrite").parquet(TABLE)
    source = spark.read.parquet(TABLE)

    def by_row() -> DataFrame:
        """A new DataFrame for each action: an adaptive plan keeps its failed stages, and raises their error again."""
        return source.select(hanging(TABLE)("v").alias("v")).groupBy("v").count()

    def by_batch() -> DataFrame:
        return source.select(hanging_batches(TABLE)("v").alias("v")).groupBy("v").count()

    if MODE == "enable":
        kq.enable(spark, when="always")
    if MODE != "plain":
        in_engine = [
            execution_of(kq.kquery_plan(frame(), when="always")) is not None for frame in (by_row, by_batch)
        ]
        print(json.dumps({"in_engine": in_engine}), flush=True)
    cancelled(spark, by_row(), "cancelJobGroup", lambda: context.cancelJobGroup("hanging"))
    cancelled(spark, by_batch(), "cancelAllJobs", context.cancelAllJobs)
    cancelled(spark, by_row(), "Ctrl-C", lambda: os.kill(os.getpid(), signal.SIGINT))
    rows = sorted(source.groupBy((source.v % 2).alias("k")).count().collect())
    print(json.dumps({"rows_after": [list(row) for row in rows]}), flush=True)
    cancelled(spark, by_row(), "stop", spark.stop)


if __name__ == "__main__":
    main()
