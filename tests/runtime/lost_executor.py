"""Run by test_lost_executor.py: a query on two executor processes; one of them is killed meanwhile.

Prints one line of JSON: the engine's rows, the right ones, and how many executors were lost.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark import kquery_plan

FILES, ROWS = 4, 100_000


def children(pid):
    out = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    found = [int(x) for x in out.split()]
    return found + [y for x in found for y in children(x)]


def executors():
    """The executor processes that this driver's JVM started."""
    found = []
    for pid in children(os.getpid()):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in line and b"java" in line.split(b"\0")[0]:
            found.append(pid)
    return found


def values_of(file):
    return np.arange(ROWS) + file


def sums():
    """What the query must answer, without more jobs on executors that have just started."""
    values = np.concatenate([values_of(i) for i in range(FILES)])
    groups = values % 1009 % 50
    return [[g, int(values[groups == g].sum())] for g in range(50)]


def main(directory):
    for i in range(FILES):
        values = values_of(i)
        pq.write_table(
            pa.table({"k": values % 1009, "v": values}), f"{directory}/{i}.parquet", row_group_size=50_000
        )
    spark = (
        kq.configure(SparkSession.builder)
        .master("local-cluster[2,1,1024]")
        .config("spark.executor.memory", "512m")
        # three executors' JVMs live for seconds each: too short for the second compiler
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.kquery.splitBytes", "256k")
        .config("spark.kquery.smallBytes", "0")
        .config("spark.kquery.parallelism", "4")
        .config("spark.kquery.driverBytes", "0")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .getOrCreate()
    )
    frame = spark.read.parquet(directory).selectExpr("k % 50 AS g", "v").groupBy("g").sum("v")
    fast = frame.transform(kquery_plan, when="always", fallback="error")
    fast.collect()  # both executors are there and warm
    victim = executors()[0]
    lost = []

    def kill():
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if any(spark.sparkContext.statusTracker().getActiveStageIds()):
                os.kill(victim, signal.SIGKILL)
                lost.append(victim)
                return
            time.sleep(0.005)

    killer = threading.Thread(target=kill)
    killer.start()
    rows = sorted(map(list, fast.collect()))
    killer.join()
    print(
        json.dumps({"engine": rows, "expected": sums(), "lost": len(lost)}),
        flush=True,
    )
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
