"""Run by test_in_container.py: a GROUP BY of many keys in a memory cgroup that holds driver, JVM and workers.

Prints one line of JSON: what the query said, and how many processes the system killed in the group.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 12_000_000


def kills(group):
    words = Path(f"{group}/memory.oom_control").read_text().split()
    return int(words[words.index("oom_kill") + 1])


def main(group, directory, settings):
    for i in range(4):
        values = (np.arange(i, ROWS, 4) * 7919) % (1 << 40)
        pq.write_table(
            pa.table({"v": values, "w": values % 100}), f"{directory}/{i}.parquet", row_group_size=1 << 19
        )
    Path(f"{group}/cgroup.procs").write_text("0")  # this process, and all that it starts
    from pyspark.sql import SparkSession

    import kquery_spark as kq
    from kquery_spark import kquery_plan

    builder = (
        kq.configure(SparkSession.builder)
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.log.level", "OFF")
        .config("spark.local.dir", directory)
        .config("spark.kquery.driverBytes", "0")
        .config("spark.kquery.shufflePartitions", "2")
    )
    for pair in filter(None, settings.split(",")):
        builder = builder.config(*pair.split("="))
    spark = builder.getOrCreate()
    frame = spark.read.parquet(*(f"{directory}/{i}.parquet" for i in range(4))).groupBy("v").sum("w")
    fast = kquery_plan(
        frame.selectExpr("count(*) AS n", "sum(`sum(w)`) AS s"), when="always", fallback="error"
    )
    try:
        said = list(fast.collect()[0])
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:3000]}"
    values = (np.arange(ROWS) * 7919) % (1 << 40)
    print(
        json.dumps({"said": said, "expected": [ROWS, int((values % 100).sum())], "killed": kills(group)}),
        flush=True,
    )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
