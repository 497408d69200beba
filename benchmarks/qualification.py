"""Compares the predictions of ``kquery-spark qualify`` for the queries of a benchmark suite with measurements.

``python -m benchmarks.qualification --data DIR --suite tpcds`` runs Spark and the engine by turns in one session with event logs,
qualifies Spark's warm runs from the log, and prints predicted and measured times side by side.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import kquery_spark as kq
from benchmarks.compare import machine, run_engine, run_spark, session, turns
from benchmarks.engines.spark import register
from benchmarks.suites import SQL_SUITES
from kquery_spark.qualify.logs import qualify_logs
from kquery_spark.qualify.report import Qualification, QueryReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDS = ("expected", "low", "high")


@dataclass(frozen=True)
class Measured:
    """Median seconds of a query's warm runs on either engine, and whether the answers were the same."""

    name: str
    spark_seconds: float
    engine_seconds: float
    same: bool

    @property
    def ratio(self) -> float:
        """How many times as long Spark took."""
        return self.spark_seconds / self.engine_seconds


@dataclass(frozen=True)
class Check:
    """A query's measurement, and the predictions for its runs on Spark; each run is a query of the log."""

    measured: Measured
    predicted: tuple[QueryReport, ...]

    def speed_up(self, end: str) -> float:
        """The median of the predicted ratios: expected, low or high."""
        return statistics.median(q.speed_up(float(getattr(q.wall, end))) for q in self.predicted)

    @property
    def hit(self) -> bool:
        """Whether the measured ratio is in the predicted range."""
        return self.speed_up("low") <= self.measured.ratio <= self.speed_up("high")

    def __str__(self) -> str:
        measured = self.measured
        times = f"{measured.spark_seconds:7.3f} {measured.engine_seconds:7.3f} {measured.ratio:6.1f}"
        predicted = " ".join(f"{self.speed_up(end):8.1f}" for end in _ENDS)
        share = statistics.median(q.engine_share for q in self.predicted)
        marks = ("" if self.hit else "  outside") + ("" if measured.same else "  NOT EQUAL")
        return f"{measured.name:>5} {times} {predicted} {share:7.0%}{marks}"


def measure(spark: SparkSession, name: str, sql: str, runs: int) -> Measured:
    """Time both engines by turns; Spark's runs have the query's name as their description in the log."""
    spark.sparkContext.setJobDescription(f"{name}, comparison")
    same = kq.verify(spark.sql(sql)).ok
    seconds: dict[object, list[float]] = defaultdict(list)
    for turn in turns([run_spark, run_engine], runs, seed=name):
        for side in turn:
            spark.sparkContext.setJobDescription(name if side is run_spark else f"{name}, engine")
            start = time.perf_counter()
            side(spark, sql)
            seconds[side].append(time.perf_counter() - start)
    return Measured(
        name, statistics.median(seconds[run_spark]), statistics.median(seconds[run_engine]), bool(same)
    )


def checks_of(measured: Sequence[Measured], result: Qualification) -> list[Check]:
    """Match measurements and predictions by the names of queries."""
    by_name: dict[str, list[QueryReport]] = defaultdict(list)
    for query in result.queries:
        by_name[query.description].append(query)
    return [Check(m, tuple(by_name[m.name])) for m in measured if by_name[m.name]]


def report(checks: Sequence[Check]) -> None:
    """Print a line for each query, and how far the sums agree."""
    print("query   spark  engine  ratio predicted    low     high  in the engine")
    print("\n".join(map(str, checks)))
    spark = sum(c.measured.spark_seconds for c in checks)
    saved = spark - sum(c.measured.engine_seconds for c in checks)
    expected, low, high = (
        sum(c.measured.spark_seconds * (1 - 1 / c.speed_up(end)) for c in checks) for end in _ENDS
    )
    print(
        f"{sum(c.hit for c in checks)} of {len(checks)} measured ratios are in the predicted range; of {spark:.1f} s "
        f"saved: measured {saved:.1f} s, predicted {expected:.1f} s ({low:.1f} to {high:.1f})"
    )


def as_json(checks: Sequence[Check], suite: str, scale: float) -> str:
    """The printed values and the machine."""
    queries = [
        {
            "name": c.measured.name,
            "spark_median": c.measured.spark_seconds,
            "engine_median": c.measured.engine_seconds,
            "ratio": c.measured.ratio,
            "same": c.measured.same,
            "predicted": {end: c.speed_up(end) for end in _ENDS},
        }
        for c in checks
    ]
    return json.dumps({"machine": machine(), "suite": suite, "scale": scale, "queries": queries}, indent=1)


def main() -> None:
    """Make the data, run the queries, print predicted and measured side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a directory for the data")
    parser.add_argument("--suite", choices=sorted(SQL_SUITES), default="tpch")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--queries", default="", help="names separated by commas (default: all)")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    suite = SQL_SUITES[arguments.suite]
    tables = suite.data(arguments.data, arguments.scale)
    with tempfile.TemporaryDirectory() as logs:
        spark = session(
            "kquery_spark bench qualification",
            conf={"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{logs}"},
        )
        register(spark, tables)
        measured = []
        for query in suite.chosen(arguments.queries):
            measured.append(measure(spark, f"q{query.name}", query.sql, arguments.runs))
            print(f"measured q{query.name}", flush=True)
        spark.stop()
        checks = checks_of(measured, qualify_logs(logs))
    report(checks)
    if arguments.json:
        arguments.json.write_text(as_json(checks, suite.name, arguments.scale))


if __name__ == "__main__":
    main()
