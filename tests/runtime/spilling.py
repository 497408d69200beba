"""Run by test_spilling.py: a sort that spills in a worker, and ends in different ways.

Prints one line of JSON: for each way, whether it spilled, what came out, and the scratch files that were left 20 seconds later.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan

ROWS = 1_500_000
SPILLED_BYTES = 4 << 20  # so much is in scratch files when a query is stopped


def scratch_files(directory):
    """Nameless files below a directory that any process has open: process id and bytes."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = os.readlink(link)
            if target.startswith(directory) and target.endswith("(deleted)"):
                found.append((int(link.parts[2]), link.stat().st_size))
        except OSError:  # closed meanwhile
            continue
    return found


def remaining_scratch_files(directory):
    """What of scratch files is there once all tasks had time to end."""
    deadline = time.monotonic() + 20
    while True:
        open_files = scratch_files(directory)
        named = [str(p) for p in Path(directory).rglob("kquery*")]
        if not (open_files or named) or time.monotonic() > deadline:
            return [*map(list, open_files), *named]
        time.sleep(0.1)


class Spilling:
    """A session whose local directory is ``directory``, and a query over a table in ``data``."""

    def __init__(self, directory, data):
        self.directory = directory
        self.spark = (
            kq.configure(SparkSession.builder)
            .master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "1g")
            .config("spark.log.level", "OFF")
            .config("spark.local.dir", directory)
            .config("spark.kquery.memoryBytes", "1m")
            .config("spark.kquery.smallBytes", "1g")
            .config("spark.kquery.driverBytes", "0")
            .getOrCreate()
        )
        frame = self.spark.read.parquet(data)
        divisor = "(w - 1)"  # 1 in the last row only
        window = "count(*) OVER (PARTITION BY v % 3 ORDER BY v, w)"
        self.good = self.planned(frame.selectExpr("v", f"{window} AS n").selectExpr("sum(n)", "max(v)"))
        self.bad = self.planned(
            frame.selectExpr(f"1 / {divisor} AS q", f"{window} AS n").selectExpr("sum(n)", "max(q)")
        )

    def planned(self, frame):
        return kquery_plan(frame, when="always", fallback="error")

    def when_spilled(self, action, query=None):
        """Run a query, by default the good one, and the action once it has spilled; gives whether that came, and what the query said."""
        results = []

        def run():
            self.spark.sparkContext.setJobGroup("spilling", "spilling", interruptOnCancel=True)
            try:
                results.append(repr((query or self.good).collect()))
            except BaseException as error:
                results.append(f"{type(error).__name__}: {str(error)[:20000]}")

        thread = threading.Thread(target=run)
        thread.start()
        deadline = time.monotonic() + 120
        spilled = []
        while time.monotonic() < deadline and thread.is_alive() and not spilled:
            found = scratch_files(self.directory)
            spilled = found if sum(size for _, size in found) > SPILLED_BYTES else []
            time.sleep(0.01)
        action(spilled)
        thread.join(120)
        return bool(spilled), results[0] if results else "still runs"


def main(directory, data):
    rng = np.random.default_rng(1)
    ones = np.zeros(ROWS, np.int64)
    ones[-1] = 1
    table = pa.table({"v": rng.integers(0, 1 << 40, ROWS), "w": ones})
    pq.write_table(table, f"{data}/data.parquet")
    case = Spilling(directory, data)
    found = {}

    def note(name, spilled, said):
        found[name] = {"spilled": spilled, "said": said, "left": remaining_scratch_files(directory)}
        print(name, found[name], file=sys.stderr, flush=True)

    note("success", *case.when_spilled(lambda _: None))
    note("error", *case.when_spilled(lambda _: None, case.bad))
    note("cancel", *case.when_spilled(lambda _: case.spark.sparkContext.cancelJobGroup("spilling")))
    note(
        "kill",
        *case.when_spilled(lambda files: [os.kill(pid, signal.SIGKILL) for pid in {p for p, _ in files}]),
    )
    note("stop", *case.when_spilled(lambda _: case.spark.stop()))
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
