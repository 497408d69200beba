"""Run by test_cluster.py: queries on a cluster of two executor processes, parts of which are killed meanwhile.

Prints one line of JSON for each fault: the engine's rows, the right ones, how many processes were killed, how many
attempts the stages took, and the files of the engine that are left afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan

FILES, ROWS, GROUPS = 4, 600_000, 300_000
DAEMONS = ("pyspark.daemon", "kquery_spark.runtime.spark.daemon")


def descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def executors() -> list[psutil.Process]:
    return [p for p in descendants() if any("CoarseGrainedExecutorBackend" in a for a in command(p))]


def python_processes() -> list[psutil.Process]:
    return [p for p in descendants() if any(a in DAEMONS for a in command(p))]


def daemons() -> list[psutil.Process]:
    """Those of Spark's Python daemons, which workers are forked from."""
    every = python_processes()
    pids = {p.pid for p in every}
    return [p for p in every if p.ppid() not in pids]


def workers() -> list[psutil.Process]:
    """Python workers that use the processor just now."""
    top = {p.pid for p in daemons()}
    forked = [p for p in python_processes() if p.pid not in top]
    return sorted(forked, key=lambda p: sum(p.cpu_times()[:2]), reverse=True)[:1]


def write_data(directory: str) -> dict[int, int]:
    """Four files; gives the sum of ``v`` for each ``k``."""
    numbers = np.arange(FILES * ROWS)
    keys = numbers * 7919 % GROUPS
    for i in range(FILES):
        rows = slice(i * ROWS, (i + 1) * ROWS)
        table = pa.table({"k": keys[rows], "v": numbers[rows]})
        pq.write_table(table, f"{directory}/{i}.parquet", row_group_size=250_000)
    sums = np.bincount(keys, weights=numbers.astype(float), minlength=GROUPS).astype(np.int64)
    largest = np.lexsort((np.arange(GROUPS), -sums))[:20]
    return {int(k): int(sums[k]) for k in largest}


class StageWatch:
    """Kills processes once the job's ``stage``-th stage runs."""

    def __init__(self, spark: SparkSession, stage: int, victims: Callable[[], list[psutil.Process]]) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._stage = stage
        self._victims = victims
        self.killed = 0

    @contextmanager
    def armed(self) -> Iterator[None]:
        seen: set[int] = set(self._tracker.getActiveStageIds())
        order: list[int] = []
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set() and not self.killed:
                for stage in sorted(self._tracker.getActiveStageIds()):
                    if stage not in seen:
                        seen.add(stage)
                        order.append(stage)
                if len(order) > self._stage:
                    time.sleep(0.15)  # tasks have reached the workers
                    for victim in self._victims()[:1]:
                        victim.send_signal(signal.SIGKILL)
                        self.killed += 1
                time.sleep(0.005)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


FAULTS: dict[str, tuple[int, Callable[[], list[psutil.Process]]]] = {
    "an executor in the map stage": (0, executors),
    "an executor in the reduce stage": (1, executors),
    "a worker in the map stage": (0, workers),
    "a worker in the reduce stage": (1, workers),
    "a daemon in the map stage": (0, daemons),
    "a daemon in the reduce stage": (1, daemons),
}


def left_behind(local: str) -> list[str]:
    return sorted(p.name for p in Path(local).rglob("*kquery*"))


def session(directory: str, local: str) -> SparkSession:
    return (
        kq.configure(SparkSession.builder)
        .master("local-cluster[2,1,2048]")
        .config("spark.executor.memory", "1g")
        .config("spark.local.dir", local)
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.kquery.splitBytes", "8m")
        .config("spark.kquery.smallBytes", "0")
        .config("spark.kquery.parallelism", "4")
        .config("spark.kquery.driverBytes", "0")
        .config("spark.kquery.memoryBytes", "8m")  # tasks spill, so a killed one has files
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.executorEnv.TMPDIR", local)
        .getOrCreate()
    )


def main(directory: str, local: str) -> None:
    warnings.simplefilter("error", kq.FallbackWarning)
    expected = write_data(directory)
    spark = session(directory, local)
    frame: Any = (
        spark.read.parquet(directory).groupBy("k").sum("v").orderBy("sum(v)", "k", ascending=[False, True])
    )

    def answer() -> dict[int, int]:
        """By a plan of its own: Spark would take the rows of stages that ran before from their shuffle files."""
        fast = kquery_plan(frame.limit(20), when="always", fallback="error")
        return {int(k): int(v) for k, v in fast.collect()}

    for name in FAULTS:
        answer()  # all executors are there and warm
        watch = StageWatch(spark, *FAULTS[name])
        with watch.armed():
            rows = answer()
        report = {
            "fault": name,
            "right": rows == expected,
            "killed": watch.killed,
            "left": left_behind(local),
        }
        print(json.dumps(report), flush=True)
    spark.stop()
    time.sleep(1)
    print(json.dumps({"fault": "stop", "left": left_behind(local)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
