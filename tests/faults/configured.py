"""Run by test_configurations.py: the 22 TPC-H queries under settings that users have, against one answer of plain Spark.

Every SparkContext also runs a Python function. Prints one line of JSON for each configuration: the queries whose answer
differs or that did not run whole.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import kquery_spark as kq
from benchmarks import tpch
from kquery_spark import kquery_plan
from kquery_spark.verify import compare_tables

# Of a SparkContext of its own. "master" is the context's master.
STATIC: dict[str, dict[str, str]] = {
    "defaults": {},
    "workers that are not reused": {"spark.python.worker.reuse": "false"},
    "two cores a task": {"spark.task.cpus": "2"},
    "speculation": {
        "spark.speculation": "true",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.interval": "10ms",
    },
    "Kryo": {"spark.serializer": "org.apache.spark.serializer.KryoSerializer"},
    "TCP sockets": {"spark.python.unix.domain.socket.enabled": "false"},
    "dynamic allocation": {
        "master": "local-cluster[2,1,2048]",
        "spark.executor.memory": "512m",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
    },
    # the last one: Spark's JVM keeps I/O encryption on for the contexts after it
    "encryption": {
        "spark.io.encryption.enabled": "true",
        "spark.authenticate": "true",
        "spark.authenticate.secret": "for this test",
        "spark.network.crypto.enabled": "true",
    },
}

# Of the session with the defaults.
DYNAMIC: dict[str, dict[str, str]] = {
    "in the driver": {"spark.kquery.driverBytes": "8m", "spark.kquery.threadBytes": "32m"},
    "AQE off": {"spark.sql.adaptive.enabled": "false"},
    "names with case": {"spark.sql.caseSensitive": "true"},
    "codegen off": {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
    "no constant folding": {
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding"
    },
    "no column pruning": {
        "spark.sql.optimizer.excludedRules": ",".join(
            f"org.apache.spark.sql.catalyst.optimizer.{rule}"
            for rule in (
                "ColumnPruning",
                "CollapseProject",
                "PushDownPredicates",
                "InferFiltersFromConstraints",
            )
        )
    },
    "batches of one row": {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"},
    "batches of any size": {"spark.sql.execution.arrow.maxRecordsPerBatch": "0"},
    "one shuffle partition": {"spark.sql.shuffle.partitions": "1"},
    "2,000 shuffle partitions": {"spark.sql.shuffle.partitions": "2000"},
    "ANSI off": {"spark.sql.ansi.enabled": "false"},
    "no broadcasts": {"spark.sql.autoBroadcastJoinThreshold": "-1"},
    "cost-based optimizer": {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.enabled": "true"},
    "large Arrow types": {"spark.sql.execution.arrow.useLargeVarTypes": "true"},
}

# Spark's own plan is another one than the importer knows all of: equal is enough.
NOT_WHOLE = {"no column pruning"}


def session(given: dict[str, str]) -> SparkSession:
    builder = kq.configure(SparkSession.builder).master(given.get("master", "local[2]"))
    common = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        # every query is to go through several stages and tasks
        "spark.kquery.driverBytes": "0",
        "spark.kquery.smallBytes": "0",
        "spark.kquery.splitBytes": "1m",
    }
    for key, value in {**common, **given}.items():
        if key != "master":
            builder = builder.config(key, value)
    return builder.getOrCreate()


def table(frame: Any) -> pa.Table:
    rows: pa.Table = frame.toArrow()
    return rows


def differing(spark: SparkSession, expected: dict[int, pa.Table], whole: bool) -> dict[int, str]:
    """What is wrong, by query."""
    found: dict[int, str] = {}
    for number in tpch.QUERIES:
        frame = spark.sql(tpch.query(number))
        try:
            actual = table(kquery_plan(frame, when="always", fallback="error" if whole else "spark"))
        except Exception as error:
            found[number] = str(error)[:500]
            continue
        if actual.schema.field(0).type == pa.large_string():
            actual = actual.cast(expected[number].schema)
        differences = compare_tables(expected[number], actual.cast(expected[number].schema), ordered=False)
        if differences:
            found[number] = "; ".join(map(str, differences))[:500]
    return found


def functions_differ(spark: SparkSession) -> dict[str, str]:
    """What is wrong with a function that needs a broadcast variable and is so large that PySpark broadcasts it, too."""
    factors, weights = spark.sparkContext.broadcast({"A": 2, "N": 3, "R": 5}), os.urandom(1 << 21)

    def weighted(flag: str, line: int) -> int:
        return factors.value[flag] * line + weights[line]

    values = spark.table("lineitem").select(udf(weighted, "long")("l_returnflag", "l_linenumber").alias("v"))
    frame = values.groupBy("v").count()
    try:
        actual = kquery_plan(frame, when="always", fallback="error").collect()
    except Exception as error:
        return {"function": str(error)[:500]}
    return {} if sorted(actual) == sorted(frame.collect()) else {"function": "another answer than Spark's"}


def report(name: str, wrong: Mapping[Any, str]) -> None:
    print(json.dumps({"configuration": name, "wrong": wrong}), flush=True)


def main(data: str) -> None:
    warnings.simplefilter("error", kq.FallbackWarning)
    spark = session(STATIC["defaults"])
    tpch.register(spark, data)
    expected = {number: table(spark.sql(tpch.query(number))) for number in tpch.QUERIES}
    report("defaults", {**differing(spark, expected, True), **functions_differ(spark)})
    for name, given in DYNAMIC.items():
        before = {key: spark.conf.get(key, None) for key in given}
        for key, value in given.items():
            spark.conf.set(key, value)
        report(name, differing(spark, expected, name not in NOT_WHOLE))
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
    for name, given in STATIC.items():
        if name == "defaults":
            continue
        spark.stop()
        spark = session(given)
        tpch.register(spark, data)
        report(name, {**differing(spark, expected, True), **functions_differ(spark)})
        for key in given:
            SparkSession.builder._options.pop(key, None)
    spark.stop()


if __name__ == "__main__":
    directory = tempfile.mkdtemp(prefix="configured-")
    os.chdir(directory)
    try:
        main(*sys.argv[1:])
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        assert not Path(directory).exists()
