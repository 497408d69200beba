"""Run a query on both engines of one session, alternating, and compare answers and warm medians."""

from __future__ import annotations

import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar

import kquery_spark as kq
from kquery_spark.config.spark_settings import configure
from kquery_spark.spark_bridge.frames.pyspark_names import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


@dataclass(frozen=True)
class Comparison:
    """The result of one query: the times of all runs in seconds, and whether the answers were the same."""

    name: str
    rows: int
    spark_seconds: tuple[float, ...]
    engine_seconds: tuple[float, ...]
    same: bool
    accelerated: bool
    reasons: tuple[str, ...]
    difference: str = ""

    @property
    def spark_median(self) -> float:
        """The middle of Spark's times."""
        return statistics.median(self.spark_seconds)

    @property
    def engine_median(self) -> float:
        """The middle of the engine's times."""
        return statistics.median(self.engine_seconds)

    @property
    def ratio(self) -> float:
        """How many times as long Spark takes; above 1 the engine is faster."""
        return self.spark_median / self.engine_median

    def as_json(self) -> dict[str, object]:
        """Everything, with medians and ratio, for a file that can be compared with another."""
        derived = {
            "spark_median": self.spark_median,
            "engine_median": self.engine_median,
            "ratio": self.ratio,
        }
        return {**asdict(self), **derived}


def session(
    app: str,
    cores: int | None = None,
    shuffle_partitions: int | None = None,
    driver_memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session set up alike for both engines: all cores or ``cores``, one shuffle partition a core, AQE on, UTC.

    ``conf``: settings on top, which win.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = f"local[{cores}]" if cores else os.environ.get("MASTER", "local[*]")
    builder = (
        configure(SparkSession.builder)
        .appName(app)
        .master(master)
        .config("spark.driver.memory", driver_memory or os.environ.get("SPARK_DRIVER_MEMORY", "4g"))
        .config("spark.sql.shuffle.partitions", str(shuffle_partitions or cores or os.cpu_count() or 2))
        .config("spark.sql.adaptive.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.maxResultSize", "0")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
    )
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def run_spark(spark: SparkSession, sql: str) -> pa.Table:
    """Plan and run on Spark alone."""
    return rows_of(spark.sql(sql))


def run_engine(spark: SparkSession, sql: str) -> pa.Table:
    """Plan and run through ``kquery_plan``; the time includes its decision, even if the query falls back to Spark."""
    return rows_of(spark.sql(sql).transform(kq.kquery_plan))


def rows_of(frame: DataFrame) -> pa.Table:
    """Call ``toArrow``, or its replacement in PySpark 3.5, which lacks it."""
    return frame.toArrow() if hasattr(frame, "toArrow") else to_arrow(frame)


def compare(
    spark: SparkSession, name: str, sql: str, runs: int = 5, step: Callable[[], None] = lambda: None
) -> tuple[Comparison, pa.Table]:
    """Verify a query, which also warms both engines, then time ``runs`` runs of each, taking turns.

    Times cover planning and running, up to the whole result in this process. ``step`` is called
    after the verification and after every round. Returns the comparison and the engine's rows.
    """
    report = kq.verify(spark.sql(sql))
    explained = kq.explain(spark.sql(sql))
    step()
    sides = {run_spark: [], run_engine: []}  # type: dict[Callable[[SparkSession, str], pa.Table], list[float]]
    table = None
    for turn in turns(list(sides), runs, seed=name):
        for side in turn:
            start = time.perf_counter()
            result = side(spark, sql)
            sides[side].append(time.perf_counter() - start)
            table = result if side is run_engine else table
        step()
    assert table is not None, "there is at least one run"
    comparison = Comparison(
        name=name,
        rows=table.num_rows,
        spark_seconds=tuple(sides[run_spark]),
        engine_seconds=tuple(sides[run_engine]),
        same=bool(report.ok),
        accelerated=bool(explained.accelerated),
        reasons=tuple(f"{node}: {sentence}" for node, sentence in explained.reasons),
        difference="" if report.ok else str(report),
    )
    return comparison, table


def turns(sides: Sequence[T], rounds: int, seed: str) -> Iterator[list[T]]:
    """Yield the order of the sides for each round: even rounds draw a random order, and odd rounds reverse it.

    Reversing keeps one side from always finding the caches that the other has filled. Drawing keeps the order from
    coinciding with periodic events, such as a garbage collection of the JVM every few runs.
    """
    lot = random.Random(seed)
    turn: list[T] = []
    for number in range(rounds):
        turn = turn[::-1] if number % 2 else lot.sample(sides, len(sides))
        yield turn


def machine() -> dict[str, object]:
    """What the times were taken on: cores, memory, versions. No names, no paths, no secrets."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    packages = ("pyspark", "pyarrow", "numpy", "pandas")
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }
