"""Run by test_changing_files.py: queries whose file is truncated, overwritten, replaced, extended or deleted meanwhile.

Prints one line of JSON: for each place, format and change, how many queries gave the planned file's answer, how many an error
that names the file, and everything else that came out.
"""

import contextlib
import json
import os
import random
import sys
import threading
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq

import kquery_spark as kq
from kquery_spark import kquery_plan

ROWS = 120_000  # enough for threads of the driver
FORMATS = ("parquet", "plain", "csv", "json", "orc")
SQL = "SELECT sum(v) AS a, count(w) AS b, max(s) AS c FROM t"
COLUMNS = "v BIGINT, w BIGINT, s STRING"


def write(path, kind, seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(10**11, 10**12, ROWS)  # strings of one length: both versions have one size
    table = pa.table({"v": values, "w": values % 90 + 10, "s": [f"text {v}" for v in values.tolist()]})
    if kind == "csv":
        pa_csv.write_csv(table, path, pa_csv.WriteOptions(include_header=False))
    elif kind == "json":
        with open(path, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
    elif kind == "orc":
        pa_orc.write_table(table, path, compression="uncompressed", stripe_size=1 << 16)
    else:
        plain = {"compression": "none", "use_dictionary": False} if kind == "plain" else {}
        pq.write_table(table, path, row_group_size=ROWS // 20, **plain)
    return [int(values.sum()), ROWS, f"text {values.max()}"]


class Case:
    """A file of one format in its directory, its first version's answer, and the bytes of both versions."""

    def __init__(self, directory, kind):
        self.kind = kind
        self.directory = f"{directory}/{kind}"
        self.path = f"{self.directory}/data.{kind}"
        os.makedirs(self.directory, exist_ok=True)
        write(self.path, kind, 2)
        with open(self.path, "rb") as file:
            self.other = file.read()
        self.answer = write(self.path, kind, 1)
        with open(self.path, "rb") as file:
            self.first = file.read()

    def replace(self, data):
        hidden = f"{self.directory}/_new"
        with open(hidden, "wb") as file:
            file.write(data)
        os.replace(hidden, self.path)

    def change(self, how):
        if how == "truncate":
            os.truncate(self.path, len(self.first) // 7)
        elif how == "zeros":
            os.truncate(self.path, 0)
            os.truncate(self.path, len(self.first))
        elif how == "overwrite":
            with open(self.path, "r+b", buffering=0) as file:
                file.write(self.other)
        elif how == "replace":
            self.replace(self.other)
        elif how == "append":
            with open(self.path, "ab") as file:
                file.write(self.other)
        else:
            os.unlink(self.path)


CHANGES = ("truncate", "zeros", "overwrite", "replace", "append", "delete")


def outcome(case, how, run, delay):
    """What a query says during whose run the file is changed, once more after it."""

    def change():
        time.sleep(delay)
        case.change(how)

    changer = threading.Thread(target=change)
    changer.start()
    results = []
    for _ in range(2):
        try:
            found = run()
            results.append("answer" if found == case.answer else f"wrong: {found}")
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            results.append("error" if case.path in text else f"unnamed: {text[:2000]}")
        changer.join()
    case.replace(case.first)
    return results


def hammer(cases, prepare, changes, times):
    """``prepare(case)`` plans a query on the unchanged file and gives what runs it."""
    rng = random.Random(7)
    found = {}
    for case in cases:
        case.replace(case.first)
        prepare(case)()  # the first one takes longer
        run, started = prepare(case), time.monotonic()
        assert (first := run()) == case.answer, (first, case.answer)
        longest = time.monotonic() - started
        for how in changes:
            counts = Counter()
            for _ in range(times):
                run = prepare(case)
                counts.update(outcome(case, how, run, rng.uniform(0, longest / 2)))
            found[f"{case.kind} {how}"] = counts
            print(
                f"{case.kind} {how}: {dict(counts)}, {time.monotonic() - started:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    return found


def in_context(case):
    ctx = kq.ExecutionContext()
    if case.kind == "csv":
        ctx.register_csv(
            "t",
            case.directory,
            header=False,
            schema=pa.schema({"v": pa.int64(), "w": pa.int64(), "s": pa.string()}),
        )
    else:
        name = "parquet" if case.kind == "plain" else case.kind
        getattr(ctx, f"register_{name}")("t", case.directory)
    frame = ctx.sql(SQL)
    return lambda: list(frame.to_arrow().to_pylist()[0].values())


def on_spark(spark, fallback):
    def prepare(case):
        name = "parquet" if case.kind == "plain" else case.kind
        frame = spark.read.schema(COLUMNS).format(name).load(case.directory)
        frame = frame.selectExpr("sum(v) AS a", "count(w) AS b", "max(s) AS c")
        fast = kquery_plan(frame, fallback=fallback, when="always")
        return lambda: list(fast.toArrow().to_pylist()[0].values())

    return prepare


@contextlib.contextmanager
def session(directory):
    from pyspark.sql import SparkSession

    spark = (
        kq.configure(SparkSession.builder)
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.log.level", "OFF")
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        .config("spark.kquery.smallBytes", "1k")
        .config("spark.kquery.splitBytes", "2m")
        .getOrCreate()
    )
    yield spark
    spark.stop()


def main(place, directory, times):
    kinds = FORMATS if place == "context" else ("plain", "csv")  # sessions read as contexts do, but slower
    cases = [Case(directory, kind) for kind in kinds]
    if place == "context":
        found = hammer(cases, in_context, CHANGES, 3 * times)
    else:
        with session(directory) as spark:
            size = "1g" if place == "driver" else "0"
            spark.conf.set("spark.kquery.driverBytes", size)
            spark.conf.set("spark.kquery.threadBytes", size)
            found = hammer(cases, on_spark(spark, "error"), ("truncate", "overwrite", "delete"), times)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
