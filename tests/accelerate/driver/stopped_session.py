"""Runs actions of an accelerated frame and of Spark's own after ``spark.stop()``; prints what each raises, as JSON."""

import json
import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

import kquery_spark as kq

ACTIONS = ("count", "collect", "toArrow", "toPandas", "isEmpty")


def start() -> SparkSession:
    builder = kq.configure(SparkSession.builder).master("local[1]").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def outcomes(frame: DataFrame) -> dict[str, str]:
    """Return the type and the beginning of the error of each action."""
    results = {}
    for action in ACTIONS:
        try:
            results[action] = f"answer {getattr(frame, action)()}"
        except Exception as error:
            results[action] = type(error).__name__
    return results


def calls_after_stop() -> dict[str, str]:
    """Return the error of each function for a session that was stopped before the engine saw it."""
    spark = start()
    frame = spark.range(9)
    spark.stop()
    calls: dict[str, Callable[[], object]] = {
        "enable": lambda: kq.enable(spark),
        "explain": lambda: kq.explain(frame),
        "verify": lambda: kq.verify(frame),
        "disable": lambda: kq.disable(spark),
    }
    results = {}
    for name, call in calls.items():
        try:
            results[name] = str(call())
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    return results


def main(directory: str) -> None:
    never_seen = calls_after_stop()
    spark = start()
    spark.range(100).write.parquet(directory)
    frame = spark.read.parquet(directory).where("id > 3")
    fast = kq.kquery_plan(frame, when="always")
    before = fast.count()
    spark.stop()
    stopped = {"spark": outcomes(frame), "engine": outcomes(fast)}
    other = start()
    later = {"spark": outcomes(frame), "engine": outcomes(fast)}
    other.stop()
    print(json.dumps({"before": before, "stopped": stopped, "new session": later, "never seen": never_seen}))


main(sys.argv[1])
