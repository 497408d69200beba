"""``kq.verify``: run a query in Spark and in the engine, and say whether the answers are equal."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from kquery_spark.session.planning import plan_frame
from kquery_spark.session.transform import accelerate
from kquery_spark.verify.compare import Difference, compare_tables


@dataclass(frozen=True)
class Report:
    """What ``verify`` found. ``accelerated``: whether the engine ran any of the query, so that equality says something."""

    ok: bool
    accelerated: bool
    coverage: float
    rows: int
    spark_seconds: float
    engine_seconds: float
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        if not self.accelerated:
            return "same as Spark SQL: yes, because Spark ran all of it"
        if self.ok:
            return (
                f"same as Spark SQL: yes ({self.rows} rows; coverage {self.coverage:.0%}; "
                f"Spark {self.spark_seconds:.2f} s, engine {self.engine_seconds:.2f} s)"
            )
        return "same as Spark SQL: NO\n" + "\n".join(f"  {d}" for d in self.differences)

    def __bool__(self) -> bool:
        return self.ok


def verify(frame: DataFrame) -> Report:
    """Run ``frame`` on Spark and with every part the engine can take, once each, and compare.

    Names, types, nullability and the multiset of rows must be equal;
    float results may differ by a relative 1e-9. An error of either side is raised.
    """
    planned = plan_frame(frame)
    expected, spark_seconds = _timed(frame)
    if not planned.parts:
        return Report(True, False, 0.0, expected.num_rows, spark_seconds, spark_seconds, ())
    fast = accelerate(planned, list(planned.parts))
    actual, engine_seconds = _timed(fast)
    differences = _field_differences(frame, fast) or compare_tables(expected, actual)
    return Report(
        not differences,
        True,
        planned.coverage,
        expected.num_rows,
        spark_seconds,
        engine_seconds,
        tuple(differences),
    )


def _timed(frame: DataFrame) -> tuple[pa.Table, float]:
    started = time.perf_counter()
    table = frame.toArrow()
    return table, time.perf_counter() - started


def _field_differences(frame: DataFrame, fast: DataFrame) -> list[Difference]:
    if frame.schema == fast.schema:
        return []
    return [
        Difference(
            f"Spark's schema is {frame.schema.simpleString()}, the engine's {fast.schema.simpleString()}"
        )
    ]
