"""DriverExecutor: runs a small query, or the last stage of one, in the driver, without a Spark task or a Python worker.

The driver is the user's own process, so its work is limited while it runs, regardless of the estimates. After a number of
rows, bytes or seconds it stops with LimitReached, and Spark's tasks run the query instead.
"""

from __future__ import annotations

import decimal
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql.types import StructType
from typing_extensions import override

from kquery_spark.compiler import CompiledQuery
from kquery_spark.compiler.placement import DRIVER_BUILD_CACHE_BYTES
from kquery_spark.run_control import LimitReached, RunControl
from kquery_spark.runtime.executor import Executor, first_rows
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.runtime.spark.frames import input_frame
from kquery_spark.runtime.spark.operator_meter import DriverMeter
from kquery_spark.runtime.spark.result_table import result_table
from kquery_spark.runtime.spark.ui_reporter import ui_reporter
from kquery_spark.runtime.spark.worker import LIMIT_REACHED_TAG, RowExchange, StageRun
from kquery_spark.runtime.split_progress import split_progress
from kquery_spark.runtime.task_meter import TaskMeter
from kquery_spark.spark_bridge.frames.arrow_collection import collect_batches
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.cancellation import cancellable
from kquery_spark.spark_bridge.session.failures import unless_result_too_large
from kquery_spark.stages import Stage
from kquery_spark.task_errors import task_error

R = TypeVar("R")

# The next three are the limits of a run that reads up to 32 MiB. For more input, they grow in proportion: a run that
# reads 128 MiB may take four times as long and produce four times as many rows and bytes.
MAX_DRIVER_SECONDS = 3.0
"""The time after which the driver gives up and Spark's tasks run the query instead."""
_MAX_ROWS = 20_000_000  # the rows that all operators together may produce
_MAX_BYTES = 256 << 20  # the bytes that all operators together may produce
_BYTES_PER_INPUT_BYTE = 8  # the bytes that they may produce per input byte, above 32 MiB of input
# A run that may produce fewer bytes has small batches. With large ones, a join collects pairs of rows in a buffer of up to
# 96 MB, and one allocation must not exceed a quarter of the limit (see ``RunControl.reserve``).
_MIN_BYTES_OF_LARGE_BATCHES = 384 << 20
_INPUT_BYTES_DIVISOR = 4  # input from earlier stages may take a quarter of the bytes that the run may produce
_large_run = threading.Lock()  # held by a run that reads more than 32 MiB


class DriverBusy(LimitReached):
    """Another query that reads more than 32 MiB is running in the driver."""


class DriverExecutor(Executor):
    """Runs ``query`` in threads of the driver, or its last stage over the rows that Spark's tasks compute for the others.

    schema: the schema of the result. threaded: returns the same query compiled for threads of the driver; None if it has
    too little or too much work for them, and then the last stage has to be a single task. The rows of earlier stages are
    cached for further actions, as Spark keeps its shuffle files. Methods raise LimitReached if the driver may not do that
    much work, or if Spark limits the size of its input, and DriverBusy if another large query is running in the driver.
    """

    def __init__(
        self,
        bridge: Bridge,
        query: CompiledQuery,
        schema: StructType,
        threaded: Callable[[], CompiledQuery | None],
    ) -> None:
        self._bridge = bridge
        self._graph = query.graph
        self._config = query.config
        self._schema = schema
        self._threaded = threaded
        self._input: list[pa.RecordBatch] | None = None

    @override
    def table(self, limit: int | None = None) -> pa.Table:
        """Return the first rows, or all of them, in the Arrow types of Spark's ``toArrow``.

        Raises PythonException for errors, as Spark does for those of a worker.
        """
        produced = self._graph.result.plan.schema
        return self._run(lambda batches: result_table(first_rows(batches, limit), produced, self._schema))

    @override
    def count(self) -> int:
        """Count the rows without keeping them."""
        return self._run(_row_count)

    def _run(self, consume: Callable[[Iterator[pa.RecordBatch]], R]) -> R:
        threaded = self._threaded()
        input_bytes = self._graph.result_input_bytes if threaded is None else threaded.estimate.scanned
        scale = max(1.0, _BYTES_PER_INPUT_BYTE * input_bytes / _MAX_BYTES)
        max_bytes = int(scale * _MAX_BYTES)
        small_batches = max_bytes < _MIN_BYTES_OF_LARGE_BATCHES
        control = RunControl(int(scale * _MAX_ROWS), max_bytes, small_batches=small_batches)
        with _one_large_run(scale > 1.0), cancellable(self._bridge.spark, control), self._metered() as meter:
            batches, stages = self._batches(threaded, max_bytes, meter)
            control.limit_time(scale * MAX_DRIVER_SECONDS)

            def work() -> R:
                # Use the settings of a worker process, regardless of the user's.
                with np.errstate(all="ignore"), decimal.localcontext(decimal.Context()), closing(batches):
                    return consume(batches)

            control.check()
            try:
                with split_progress(stages, self._config, control):
                    return control.controlled(work)()
            except Exception as error:  # raise what Spark raises for an error in a worker
                raised = task_error(error)
                raised.__cause__ = error
                text = "".join(traceback.format_exception(raised))
                raise PythonException(f"In the driver:\n{text}") from None

    @contextmanager
    def _metered(self) -> Iterator[DriverMeter | None]:
        """Provide the meter of a run; None if Spark's UI does not show it."""
        reporter = ui_reporter(self._bridge, self._config)
        if reporter is None:
            yield None
            return
        with reporter.driver_run(self._bridge) as meter:
            yield meter

    def _batches(
        self, threaded: CompiledQuery | None, max_bytes: int, meter: DriverMeter | None
    ) -> tuple[Generator[pa.RecordBatch, None, None], tuple[Stage, ...]]:
        """Return the result as a lazy stream of batches, and the stages that the driver runs for it.

        These are all stages, run by threads, or only the last one, run by one task over input that Spark collects first.
        """
        if threaded is not None:
            local = LocalExecutor(threaded.graph, threaded.config, meter=meter)
            return local.batches(), threaded.graph.stages
        rows = self._collected_input(
            max_bytes // _INPUT_BYTES_DIVISOR, None if meter is None else meter.query
        )
        return self._last_stage(rows, meter), (self._graph.result,)

    def _last_stage(
        self, rows: list[pa.RecordBatch], meter: TaskMeter | None
    ) -> Generator[pa.RecordBatch, None, None]:
        stage = self._graph.result
        tags = {s.stage_id: i for i, s in enumerate(self._graph.stages) if s.stage_id in stage.inputs}
        config = replace(
            self._config, build_cache_bytes=min(self._config.build_cache_bytes, DRIVER_BUILD_CACHE_BYTES)
        )
        yield from StageRun(stage, config, RowExchange(len(self._graph.stages) - 1, tags), meter)(iter(rows))

    def _collected_input(self, max_bytes: int, query: int | None) -> list[pa.RecordBatch]:
        """Return the input rows of the last stage's task: the task number 0 if it reads files, otherwise payload rows."""
        if self._graph.result.is_map:
            return [pa.record_batch([pa.array([0])], ["id"])]
        if self._input is None:
            self._input = self._collect_input(max_bytes, query)
        return self._input

    def _collect_input(self, limit: int, query: int | None) -> list[pa.RecordBatch]:
        def collect() -> list[pa.RecordBatch]:
            return collect_batches(input_frame(self._bridge, self._graph, self._config, limit, query))

        batches = unless_result_too_large(collect)
        if batches is None:
            raise LimitReached("Spark's limit of a result")
        tags = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
        if LIMIT_REACHED_TAG in tags or sum(batch.nbytes for batch in batches) > limit:
            raise LimitReached("rows of earlier stages")
        return batches


@contextmanager
def _one_large_run(is_large: bool) -> Iterator[None]:
    """Let only one large query at a time run in the driver; raise DriverBusy for a second one.

    Spark's scheduler limits how many tasks run at once, but it does not know of the driver's threads.
    """
    if not is_large:
        yield
        return
    if not _large_run.acquire(blocking=False):
        raise DriverBusy("another large query in the driver")
    try:
        yield
    finally:
        _large_run.release()


def _row_count(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(int(batch.num_rows) for batch in batches)
