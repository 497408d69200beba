"""Measures how planning and tasks grow with the number of files, tasks, and columns, and with the rows of one key.

    python -m benchmarks.scale --data DIR --json scale.json

Each case runs alternately on Spark and on the engine, and the answers are compared. Planning time starts with the
DataFrame. It ends with the physical plan on Spark, and with the stages on the engine. Query times include the
planning time. Memory is the memory of the Python driver, which caches the footers of the files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.compare import compare, machine, session
from benchmarks.engines.spark import session_settings
from kquery_spark.accelerate.api import kquery_plan
from kquery_spark.accelerate.planning.pipeline import plan_frame
from kquery_spark.stages.serialization import to_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GROUPED_SUM = "SELECT k, count(*) AS n, sum(v) AS v FROM t GROUP BY k"
# One file per task: the cost of opening a file counts as this many bytes, which is also the most that a task may read.
_TASK_PER_FILE = {
    "spark.sql.files.openCostInBytes": str(128 << 20),
    "spark.sql.files.maxPartitionBytes": str(128 << 20),
}
_FILES_PER_DIRECTORY = 1000
_MAX_LINKS = 10_000  # most file systems allow at least 32,000 hard links to a file


@dataclass(frozen=True)
class Case:
    """A query over the generated table ``t``. write: creates a directory and writes the table's files into it.

    falls_back: whether Spark is expected to run the query.
    """

    name: str
    write: Callable[[Path], None]
    sql: str = _GROUPED_SUM
    settings: dict[str, str] = field(default_factory=dict)
    falls_back: bool = False


@dataclass(frozen=True)
class CaseResult:
    """The result of a case. Times are medians. first_planning_seconds: the engine's first planning, without cached footers.

    tasks, plan_bytes: the number of tasks and the serialized size of all stages. driver_bytes: the growth of the Python
    driver's memory during the first planning and the runs of the query.
    """

    name: str
    spark_seconds: float
    engine_seconds: float
    spark_planning_seconds: float
    engine_planning_seconds: float
    first_planning_seconds: float
    tasks: int
    plan_bytes: int
    driver_bytes: int


def small_files(count: int, rows: int = 10) -> Callable[[Path], None]:
    """Return a function that writes ``count`` equal files, 1,000 per directory. Most are hard links to a few files."""

    def write(directory: Path) -> None:
        table = pa.table({"k": np.arange(rows) % 10, "v": np.arange(rows), "s": np.arange(rows).astype(str)})
        original = Path()
        for number in range(count):
            path = directory / f"part={number // _FILES_PER_DIRECTORY}" / f"{number}.parquet"
            if number % _FILES_PER_DIRECTORY == 0:
                path.parent.mkdir(parents=True)
            if number % _MAX_LINKS == 0:
                pq.write_table(table, path)
                original = path
            else:
                os.link(original, path)

    return write


def wide_rows(count: int, rows: int = 20_000) -> Callable[[Path], None]:
    """Return a function that writes one file with ``count`` columns of integers."""

    def write(directory: Path) -> None:
        directory.mkdir()
        values = np.random.default_rng(7).integers(0, 1000, rows)
        pq.write_table(
            pa.table({f"c{i}": np.roll(values, i) for i in range(count)}), directory / "wide.parquet"
        )

    return write


def skewed_keys(share: float, rows: int = 10_000_000) -> Callable[[Path], None]:
    """Return a function that writes rows with uniform keys, except that this share of the rows has the key 7."""

    def write(directory: Path) -> None:
        directory.mkdir()
        rng = np.random.default_rng(7)
        keys = rng.integers(0, 1_000_000, rows)
        keys[rng.random(rows) < share] = 7
        table = pa.table({"k": keys, "v": rng.integers(0, 1000, rows)})
        for part in range(4):
            step = rows // 4
            pq.write_table(
                table.slice(part * step, step), directory / f"{part}.parquet", row_group_size=1 << 18
            )

    return write


def _sum_of_columns(count: int) -> str:
    return f"SELECT {', '.join(f'sum(c{i}) AS s{i}' for i in range(count))} FROM t"


_SELF_JOIN = (
    "SELECT count(*) AS n, sum(a.v + b.w) AS v FROM t AS a "
    "JOIN (SELECT k, max(v) AS w FROM t GROUP BY k) AS b ON a.k = b.k"
)
_SHUFFLED = {"spark.sql.autoBroadcastJoinThreshold": "-1"}

CASES = (
    Case("1,000 files of ten rows", small_files(1000)),
    Case("10,000 files of ten rows", small_files(10_000)),
    Case("100,000 files of ten rows", small_files(100_000), falls_back=True),
    Case("100 files, each one task of Spark", small_files(100), settings=_TASK_PER_FILE),
    Case("1,000 files, each one task of Spark", small_files(1000), settings=_TASK_PER_FILE),
    Case("100 columns, all summed", wide_rows(100), _sum_of_columns(100)),
    Case("1,000 columns, all summed", wide_rows(1000), _sum_of_columns(1000)),
    Case("shuffled join, even keys", skewed_keys(0.0), _SELF_JOIN, _SHUFFLED),
    Case("shuffled join, half of the rows have one key", skewed_keys(0.5), _SELF_JOIN, _SHUFFLED),
)


def measure(spark: SparkSession, case: Case, directory: Path, runs: int) -> CaseResult:
    """Run one case on both engines. Raises ValueError if their answers differ.

    If the query falls back to Spark, the result has zero tasks, and the times of the engine are those of Spark.
    """
    process = psutil.Process()
    path = directory / case.name.replace(" ", "_").replace(",", "")
    shutil.rmtree(path, ignore_errors=True)
    case.write(path)
    try:
        with session_settings(spark, case.settings):
            spark.read.parquet(str(path)).createOrReplaceTempView("t")
            before = process.memory_info().rss
            _, first_planning = _planning_seconds(spark, case.sql)
            comparison, _ = compare(spark, case.name, case.sql, runs)
            if not comparison.same or comparison.accelerated == case.falls_back:
                raise ValueError(
                    f"{case.name}: {comparison.difference or comparison.reasons or 'accelerated'}"
                )
            memory_growth = process.memory_info().rss - before
            planning = [_planning_seconds(spark, case.sql) for _ in range(runs)]
            parts = plan_frame(spark.sql(case.sql)).parts
            stages = [stage for part in parts for stage in part.compiled.graph.stages]
            return CaseResult(
                case.name,
                comparison.spark_median,
                comparison.engine_median,
                statistics.median(spark_seconds for spark_seconds, _ in planning),
                statistics.median(engine_seconds for _, engine_seconds in planning),
                first_planning,
                sum(len(stage.tasks) for stage in stages),
                sum(len(to_bytes(stage)) for stage in stages),
                memory_growth,
            )
    finally:
        shutil.rmtree(path)


def _planning_seconds(spark: SparkSession, sql: str) -> tuple[float, float]:
    """Return how many seconds Spark takes to its physical plan, and the engine to its stages."""

    def timed(plan: Callable[[DataFrame], Any]) -> float:
        frame = spark.sql(sql)
        start = time.perf_counter()
        plan(frame)
        return time.perf_counter() - start

    return timed(lambda frame: frame._jdf.queryExecution().executedPlan()), timed(kquery_plan)


HEADINGS = (
    "case",
    "Spark",
    "kquery_spark",
    "ratio",
    "planning: Spark",
    "planning: kquery_spark",
    "first planning",
    "tasks",
    "plan",
    "driver",
)


def cells(result: CaseResult) -> tuple[str, ...]:
    """Return the table cells of a result, in the order of ``HEADINGS``."""
    return (
        result.name,
        f"{result.spark_seconds:.2f} s",
        f"{result.engine_seconds:.2f} s",
        f"{result.spark_seconds / result.engine_seconds:.1f}",
        f"{result.spark_planning_seconds:.2f} s",
        f"{result.engine_planning_seconds:.2f} s",
        f"{result.first_planning_seconds:.2f} s",
        f"{result.tasks:,}",
        f"{result.plan_bytes / 1e3:,.0f} KB",
        f"{max(result.driver_bytes, 0) / 1e6:,.0f} MB",  # less if memory was returned
    )


def main() -> None:
    """Measure the cases, and print a table with one row per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, help="a directory for the files, which are removed afterward"
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", default="", help="run cases whose names match this pattern (default: all)")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    arguments.data.mkdir(parents=True, exist_ok=True)
    spark = session("kquery_spark scale benchmark", cores=2, driver_memory="6g")
    results = []
    print(f"| {' | '.join(HEADINGS)} |\n{'|---' * len(HEADINGS)}|", flush=True)
    try:
        for case in CASES:
            if re.search(arguments.cases, case.name):
                results.append(measure(spark, case, arguments.data, arguments.runs))
                print(f"| {' | '.join(cells(results[-1]))} |", flush=True)
    finally:
        spark.stop()
    if arguments.json:
        content = {"machine": machine(), "runs": arguments.runs, "cases": [asdict(r) for r in results]}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
