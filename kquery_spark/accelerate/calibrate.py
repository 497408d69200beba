"""Measures the cost model on this machine or cluster by small queries that alternate between Spark and the engine."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from kquery_spark.accelerate.api import kquery_plan
from kquery_spark.accelerate.planning.pipeline import plan_frame
from kquery_spark.config.cost import CostModel
from kquery_spark.spark_bridge.session.bypass import bypass

ROWS = 2_000_000
_MIN_ROWS = 1_000
_REPEATS = 5
_PARTITIONS = 2
_LEAST_MEASURABLE_SECONDS = 1e-10  # per row, value, or byte; used if a smaller or negative time was measured


def calibrate(spark: SparkSession, directory: str | None = None, rows: int = ROWS) -> CostModel:
    """Measure and return the cost model; terms that are not measured (long strings, Arrow results) keep their defaults.

    directory: an existing directory that Spark's workers can read; None: the temporary directory of this machine.
    rows: the number of rows of the table that is measured. The table is written to a new subdirectory, which is removed
    at the end. With the default, calibration takes about half a minute; no other program should run during this time.

    Raises ValueError for fewer than 1,000 rows, and FileNotFoundError or NotADirectoryError if ``directory`` does not exist
    or is not a directory.
    """
    if rows < _MIN_ROWS:
        raise ValueError(f"calibration needs at least {_MIN_ROWS:,} rows, not {rows:,}")
    root = Path(tempfile.mkdtemp(prefix="kquery-calibrate-", dir=directory)).absolute()
    root.chmod(0o755)  # workers may run as other users
    try:
        with bypass():
            return _Calibration(spark, _table(root, rows), rows).model()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _table(directory: Path, rows: int) -> str:
    """Write a Parquet file of numbers (many keys, few groups, and values that do not compress), and return its URI."""
    random = np.random.default_rng(1)
    columns = {
        "k": random.integers(0, max(rows // 3, 1), rows),
        "g": random.integers(0, 50, rows).astype(np.int32),
        "v": random.random(rows),
        "w": random.random(rows),
    }
    path = directory / "calibration.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=max(rows // 4, 1))
    return path.as_uri()  # Spark would look for a path without a scheme in its default filesystem


class _Calibration:
    """Measurements over one table; seconds are medians of runs that alternate."""

    def __init__(self, spark: SparkSession, path: str, rows: int) -> None:
        self._spark = spark
        self._table = spark.read.parquet(path)
        self._rows = rows

    def model(self) -> CostModel:
        """Measure all terms. The order matters, because later measurements may need the terms measured before them.

        For example, ``_step_row_seconds`` corrects its measurement for decoding, steps, and stages.
        """
        default = CostModel()
        model = replace(default, planning_seconds=self._planning_seconds())
        model = replace(model, stage_seconds=self._stage_seconds())
        model = replace(model, result_row_seconds=self._result_row_seconds())
        model = replace(model, handed_value_seconds=self._handed_value_seconds())
        model = replace(model, decoded_byte_seconds=self._decoded_byte_seconds())
        model = replace(model, step_seconds=self._step_seconds())
        model = replace(model, step_row_seconds=self._step_row_seconds(model))
        by_spark, by_engine = self._sort_row_seconds()
        share = by_engine / default.sort_row_seconds
        return replace(
            model,
            spark_sort_row_seconds=by_spark,
            sort_row_seconds=by_engine,
            sort_value_seconds=default.sort_value_seconds * share,
            sort_byte_seconds=default.sort_byte_seconds * share,
        )

    def _planning_seconds(self) -> float:
        query = self._table.groupBy("g").sum("v")

        def spark() -> None:
            query.filter("g >= 0").schema  # noqa: B018

        return _difference(lambda: plan_frame(query.filter("g >= 0")), spark)

    def _stage_seconds(self) -> float:
        numbers = self._spark.range(0, _PARTITIONS, 1, _PARTITIONS)
        return _difference(
            lambda: _run(numbers.mapInArrow(_unchanged_batches, "id bigint")), lambda: _run(numbers)
        )

    def _result_row_seconds(self) -> float:
        """Seconds per row for Spark to read rows of three numbers from a Python worker that generates them."""
        rows = self._rows // 2
        numbers = self._spark.range(0, _PARTITIONS, 1, _PARTITIONS)
        generated = numbers.mapInArrow(_Rows(rows // _PARTITIONS), "a bigint, b double, c int")
        none = numbers.mapInArrow(_Rows(0), "a bigint, b double, c int")
        return max(_LEAST_MEASURABLE_SECONDS, _difference(lambda: _run(generated), lambda: _run(none)) / rows)

    def _handed_value_seconds(self) -> float:
        """Seconds per value for a Python worker to read rows of three numbers, minus Spark's time to compute the rows."""
        numbers = self._spark.range(0, self._rows // 2, 1, _PARTITIONS)
        numbers = numbers.selectExpr("id AS a", "id * 0.5D AS b", "int(id) AS c")
        handed, none = numbers.mapInArrow(_drop, "a bigint"), numbers.limit(0).mapInArrow(_drop, "a bigint")
        seconds = _difference(lambda: _run(handed), lambda: _run(none)) - _median(lambda: _run(numbers))
        return max(_LEAST_MEASURABLE_SECONDS, seconds / (self._rows // 2 * 3))

    def _decoded_byte_seconds(self) -> float:
        """Seconds saved per decoded byte, measured by aggregates of whole columns: nearly all of the work is reading."""
        query = self._table.selectExpr("sum(v) AS v", "sum(w) AS w", "max(k) AS k")
        saved = self._saved(query) / (self._rows * 24)
        return max(_LEAST_MEASURABLE_SECONDS, saved)

    def _step_seconds(self) -> float:
        """Seconds that Spark takes for an exchange and a stage of few rows."""
        few = self._table.limit(1000).localCheckpoint()
        grouped = few.groupBy("g").sum("v")
        return _difference(lambda: _run(grouped), lambda: _run(few.filter("g >= 0")))

    def _step_row_seconds(self, model: CostModel) -> float:
        """Seconds saved per row by an aggregation into many groups, apart from what reading and the two steps save.

        The measured saving is already reduced by the engine's two Python stages, so their time is added.
        """
        saved = self._saved(self._table.groupBy("k").sum("v").selectExpr("max(k) AS k"))
        explained = self._rows * 16 * model.decoded_byte_seconds + 2 * model.step_seconds
        return max(_LEAST_MEASURABLE_SECONDS, (saved - explained + 2 * model.stage_seconds) / self._rows)

    def _sort_row_seconds(self) -> tuple[float, float]:
        """Seconds per row to sort in one task: in Spark, and in the engine."""
        query = self._table.select("k", "v").coalesce(1).sortWithinPartitions("v")
        read = self._table.select("k", "v").coalesce(1)
        by_spark = _difference(lambda: _run(query), lambda: _run(read)) / self._rows
        values = pa.array(np.random.default_rng(2).random(self._rows))

        def sort() -> None:
            values.take(pc.sort_indices(values))

        by_engine = _median(sort) / self._rows
        return max(_LEAST_MEASURABLE_SECONDS, by_spark), max(_LEAST_MEASURABLE_SECONDS, by_engine)

    def _saved(self, query: DataFrame) -> float:
        fast = kquery_plan(query, when="always", fallback="error")
        return _difference(lambda: _run(query), lambda: _run(fast))


class _Rows:
    """Function for ``mapInArrow`` that ignores its input and generates ``rows`` rows of three numbers per input batch."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            for start in range(0, self._rows, 100_000):
                numbers = np.arange(start, min(start + 100_000, self._rows))
                columns = [numbers, numbers * 0.5, numbers.astype(np.int32)]
                yield pa.RecordBatch.from_arrays([pa.array(c) for c in columns], names=["a", "b", "c"])


def _unchanged_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _drop(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield from ()


def _run(frame: DataFrame) -> None:
    """Compute all rows and discard them."""
    frame.write.format("noop").mode("overwrite").save()


def _difference(slow: Callable[[], object], fast: Callable[[], object]) -> float:
    """Return the median time of ``slow`` minus that of ``fast``, in seconds; 0 if it is negative. Runs alternate."""
    slow()
    fast()
    times = [(_seconds(slow), _seconds(fast)) for _ in range(_REPEATS)]
    more = statistics.median(a for a, _ in times) - statistics.median(b for _, b in times)
    return max(0.0, more)


def _median(work: Callable[[], object]) -> float:
    work()
    return statistics.median(_seconds(work) for _ in range(_REPEATS))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
