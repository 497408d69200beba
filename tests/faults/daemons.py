"""Run by test_daemons.py: Python daemons that die between queries or cannot fork, for the engine and for plain Spark.

Prints one line of JSON for each case: what the query ended with, and the engine's warnings.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan
from tests.faults.full_disk import outcome

ROWS = 10_000
_MODULES = ("pyspark.daemon", "kquery_spark.runtime.spark.daemon")
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


def adopt_orphans() -> None:
    """Make this process the parent of workers whose daemon dies, so that it can find them, and reap them after a kill."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def command(process: psutil.Process) -> list[str]:
    """The command line; empty for a process that has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def python_processes() -> list[psutil.Process]:
    """Daemons and workers below this process, daemons first: a worker is the child of a daemon."""
    children = psutil.Process().children(recursive=True)
    return [p for p in children if any(module in command(p) for module in _MODULES)]


def daemons() -> list[psutil.Process]:
    pids = {p.pid for p in python_processes()}
    return [p for p in python_processes() if p.ppid() not in pids]


def kill(victims: list[psutil.Process]) -> int:
    """Kill processes that are below this one, and reap them; return how many they were."""
    for victim in victims:
        victim.send_signal(signal.SIGKILL)
    psutil.wait_procs(victims, timeout=10)
    return len(victims)


def limit_forks(group: Path) -> Callable[[], int]:
    """A fault that moves the daemons to a control group in which nothing more may start, and kills their workers."""

    def fault() -> int:
        (group / "pids.max").write_text("1")
        found = daemons()
        for daemon in found:
            (group / "cgroup.procs").write_text(str(daemon.pid))
        pids = {p.pid for p in found}
        return kill([p for p in python_processes() if p.pid not in pids])

    return fault


def open_session() -> SparkSession:
    return (
        kq.configure(SparkSession.builder)
        .master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.kquery.driverBytes", "0")
        .getOrCreate()
    )


def by_engine(rows: DataFrame) -> list[Any]:
    return kquery_plan(rows.groupBy().sum("v"), when="always").collect()


def by_spark(rows: DataFrame) -> list[Any]:
    return rows.mapInArrow(lambda batches: batches, rows.schema).groupBy().sum("v").collect()


def main(data: str, group: str) -> None:
    adopt_orphans()
    pq.write_table(
        pa.table({"k": [i % 10 for i in range(ROWS)], "v": list(range(ROWS))}), f"{data}/t.parquet"
    )
    queries: dict[str, Callable[[DataFrame], list[Any]]] = {"the engine": by_engine, "Spark": by_spark}
    faults: dict[str, Callable[[], int]] = {
        "daemons": lambda: kill(daemons()),
        "daemons and workers": lambda: kill(python_processes()),
    }
    if os.path.isdir(group):
        faults["forks"] = limit_forks(Path(group))
    for fault, cause in faults.items():
        for engine, query in queries.items():
            spark = open_session()  # with a daemon of its own
            rows = spark.read.parquet(data)
            before = outcome(partial(query, rows))
            hit = cause()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", kq.FallbackWarning)
                after = outcome(partial(query, rows))
            said = [str(w.message) for w in caught if w.category is kq.FallbackWarning]
            report = {
                "case": f"{fault}, {engine}",
                "before": before,
                "hit": hit,
                "after": after,
                "warnings": said,
            }
            print(json.dumps(report), flush=True)
            if os.path.isdir(group):
                (Path(group) / "pids.max").write_text("max")
            spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
