"""Run by test_cluster.py: queries on a cluster of two executor processes; one of them is killed while a task runs there.

A task of the stage in question holds still (``held_daemon``) and says which process runs it, so every kill hits it. Prints
one line of JSON for each fault: whether the rows are right, what Spark's event log says of the held task, of its stage and
of stages that ran again, and the files of the engine that are left afterwards.
"""

from __future__ import annotations

import contextlib
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
from tests.faults.held_daemon import HOLD_VARIABLE, MAP, REDUCE, held
from tests.runtime.spilling import remaining_scratch_files

FILES, ROWS, GROUPS = 4, 200_000, 100_000
_PROCESSES = (
    "CoarseGrainedExecutorBackend",
    "held_daemon",
)  # in the command lines of executors and Python processes

Victims = Callable[[psutil.Process], list[psutil.Process]]


def write_data(directory: str) -> dict[int, int]:
    """Write four files; return the 20 largest sums of ``v`` by ``k``."""
    numbers = np.arange(FILES * ROWS)
    keys = numbers * 7919 % GROUPS
    for i in range(FILES):
        rows = slice(i * ROWS, (i + 1) * ROWS)
        table = pa.table({"k": keys[rows], "v": numbers[rows]})
        pq.write_table(table, f"{directory}/{i}.parquet", row_group_size=100_000)
    sums = np.bincount(keys, weights=numbers.astype(float), minlength=GROUPS).astype(np.int64)
    largest = np.lexsort((np.arange(GROUPS), -sums))[:20]
    return {int(k): int(sums[k]) for k in largest}


def executor(worker: psutil.Process) -> list[psutil.Process]:
    """The JVM whose task the worker runs."""
    return [p for p in worker.parents() if "CoarseGrainedExecutorBackend" in " ".join(p.cmdline())][:1]


def worker_alone(worker: psutil.Process) -> list[psutil.Process]:
    return [worker]


def daemon_and_workers(worker: psutil.Process) -> list[psutil.Process]:
    """All Python processes of the executor for this kind of task: their daemon first, so that it cannot fork others.

    PySpark's daemon leads a process group, which its workers are in.
    """
    daemon = psutil.Process(os.getpgid(worker.pid))
    return [daemon, *daemon.children()]


VICTIMS: dict[str, Victims] = {
    "an executor": executor,
    "a worker": worker_alone,
    "a daemon and its workers": daemon_and_workers,
}
FAULTS: dict[str, tuple[str, str, Victims]] = {
    f"{name} in a {stage} stage of {engine}": (engine, stage, victims)
    for engine, stage in (("the engine", MAP), ("the engine", REDUCE), ("Spark", REDUCE))
    for name, victims in VICTIMS.items()
}


class Killer:
    """Kills processes as soon as a task of ``stage`` holds in ``directory``."""

    def __init__(self, directory: Path, stage: str, victims: Victims) -> None:
        self._directory = directory
        self._stage = stage
        self._victims = victims
        self.killed: list[str] = []
        self.task: dict[str, int] = {}

    @contextmanager
    def armed(self) -> Iterator[None]:
        for path in self._directory.iterdir():
            path.unlink()
        (self._directory / self._stage).touch()
        stop = threading.Event()
        thread = threading.Thread(target=self._kill, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _kill(self, stop: threading.Event) -> None:
        running = self._directory / "running"
        while not running.exists():
            if stop.wait(0.01):
                return
        self.task = json.loads(running.read_text())
        victims = self._victims(psutil.Process(self.task["pid"]))
        self.killed = [self._checked(victim) for victim in victims]  # all of them, before any is killed
        for victim in victims:
            with contextlib.suppress(psutil.NoSuchProcess):  # a worker that ended with its daemon
                victim.send_signal(signal.SIGKILL)
        (self._directory / "released").touch()  # for a task that lives on

    def _checked(self, victim: psutil.Process) -> str:
        """What kind of process a victim is; an error for every process that this run did not start.

        Only the executors of this run and their Python processes have its directory in their environment.
        """
        line = " ".join(victim.cmdline())
        kind = next((name for name in _PROCESSES if name in line), None)
        if kind is None or victim.environ().get(HOLD_VARIABLE) != str(self._directory):
            raise RuntimeError(f"process {victim.pid} does not belong to this test: {line[:200]}")
        return kind


class EventLog:
    """What Spark's event log says of stages and of tasks."""

    def __init__(self, directory: Path) -> None:
        (file,) = (p for p in directory.rglob("*") if p.is_file() and p.name.startswith(("app", "local")))
        events = [json.loads(line) for line in file.read_text().splitlines()]
        self._submitted = [e for e in events if e["Event"] == "SparkListenerStageSubmitted"]
        self._ended = {e["Task Info"]["Task ID"]: e for e in events if e["Event"] == "SparkListenerTaskEnd"}

    def facts(self, task: dict[str, int], group: str) -> dict[str, Any]:
        """Of the task that was hit, of its stage, and of the stages of ``group``'s jobs that were submitted again."""
        end = self._ended[task["task"]]
        submitted = next(e for e in self._submitted if e["Stage Info"]["Stage ID"] == task["stage"])
        stage = submitted["Stage Info"]
        ours = [e for e in self._submitted if e["Properties"].get("spark.jobGroup.id") == group]
        stages = {e["Stage Info"]["Stage ID"] for e in ours}
        metrics = [e.get("Task Metrics") or {} for e in self._ended.values() if e["Stage ID"] in stages]
        return {
            "ended": end["Task End Reason"]["Reason"],
            "description": str(end["Task End Reason"].get("Description"))[:300],
            "stage_of_task": end["Stage ID"] == task["stage"],
            "group": submitted["Properties"].get("spark.jobGroup.id"),
            "parents": len(stage["Parent IDs"]),
            "operators": sorted({json.loads(r["Scope"])["name"] for r in stage["RDD Info"] if "Scope" in r}),
            "spilled": sum(m.get("Disk Bytes Spilled", 0) for m in metrics),
            "again": sum(e["Stage Info"]["Stage Attempt ID"] > 0 for e in ours),
        }


def session(local: str, hold: Path, events: Path) -> SparkSession:
    return (
        kq.configure(SparkSession.builder)
        .master("local-cluster[2,1,2048]")
        .config("spark.executor.memory", "1g")
        .config("spark.local.dir", local)
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.dir", events.as_uri())
        .config("spark.eventLog.rolling.enabled", "false")
        .config("spark.eventLog.compress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.kquery.splitBytes", "8m")
        .config("spark.kquery.smallBytes", "0")
        .config("spark.kquery.parallelism", "4")
        .config("spark.kquery.driverBytes", "0")
        .config("spark.kquery.memoryBytes", "2m")  # tasks spill, so a killed one has files
        .config("spark.python.daemon.module", "tests.faults.held_daemon")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config(f"spark.executorEnv.{HOLD_VARIABLE}", str(hold))
        .config("spark.executorEnv.TMPDIR", local)
        .getOrCreate()
    )


def main(data: str, local: str, scratch: str) -> None:
    warnings.simplefilter("error", kq.FallbackWarning)
    expected = write_data(data)
    hold, events = Path(scratch) / "hold", Path(scratch) / "events"
    hold.mkdir()
    events.mkdir()
    spark = session(local, hold, events)
    sums = spark.read.parquet(data).groupBy("k").sum("v")

    def largest(frame: Any) -> Any:
        return frame.orderBy("sum(v)", "k", ascending=[False, True]).limit(20)

    def answer(engine: str) -> dict[int, int]:
        """By a plan of its own: Spark would take the rows of stages that ran before from their shuffle files."""
        if engine == "Spark":
            frame = largest(sums.mapInArrow(held, sums.schema))
        else:
            frame = kquery_plan(largest(sums), when="always", fallback="error")
        return {int(k): int(v) for k, v in frame.collect()}

    reports: list[tuple[str, Killer, dict[str, Any]]] = []
    answer("the engine")  # all executors are there and warm
    for name, (engine, stage, victims) in FAULTS.items():
        spark.sparkContext.setJobGroup(name, name)
        killer = Killer(hold, stage, victims)
        with killer.armed():
            rows = answer(engine)
        spark.sparkContext.setJobGroup("between", "between")
        reports.append((name, killer, {"right": rows == expected, "left": remaining_scratch_files(local)}))
        print(name, killer.killed, killer.task, reports[-1][2], file=sys.stderr, flush=True)
    spark.stop()
    time.sleep(1)
    log = EventLog(events)
    for name, killer, report in reports:
        facts = log.facts(killer.task, name) if killer.task else {}
        print(json.dumps({"fault": name, "killed": killer.killed, **report, **facts}), flush=True)
    print(json.dumps({"fault": "stop", "left": remaining_scratch_files(local)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
