"""DriverExecutor: the last stage of a query in the driver, if it is little work: no shuffle, no task of Spark, no worker.

The driver is the user's own process, so the work is bounded while it runs, whatever was estimated: past a number of rows,
bytes or seconds it stops with LimitReached, and Spark's tasks take over.
"""

from __future__ import annotations

import decimal
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
from kquery_spark.compiler.placement import DRIVER_KEPT_BYTES
from kquery_spark.run_control import LimitReached, RunControl
from kquery_spark.runtime.executor import Executor
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.runtime.spark.frames import input_frame
from kquery_spark.runtime.spark.operator_meter import DriverMeter
from kquery_spark.runtime.spark.result_table import result_table
from kquery_spark.runtime.spark.ui_reporter import ui_reporter
from kquery_spark.runtime.spark.worker import TOO_MUCH, RowExchange, StageRun
from kquery_spark.runtime.split_progress import split_progress
from kquery_spark.runtime.task_meter import TaskMeter
from kquery_spark.spark_bridge.frames.arrow_collection import collect_batches
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.cancellation import cancellable
from kquery_spark.spark_bridge.session.failures import unless_result_too_large
from kquery_spark.stages import Stage
from kquery_spark.task_errors import task_error

R = TypeVar("R")

MAX_DRIVER_SECONDS = 3.0
"""How long the driver works on a query before Spark's tasks take over."""
_MAX_ROWS = 20_000_000  # of all operators together
_MAX_BYTES = 192 << 20
_BYTES_PER_INPUT_BYTE = 8  # that operators may produce where the settings allow much input
_INPUT_BYTES_DIVISOR = 4  # of the bytes: one in so many may be input from earlier stages


class DriverExecutor(Executor):
    """Runs the last stage of ``query``, which has one task, over the rows that Spark's tasks give for the stages before it.

    schema: the result's. The rows of earlier stages are kept, as Spark keeps its shuffle files, for further actions.
    threaded: the same query cut for threads of the driver, which run all of it, or None if it has too little work for them.
    Methods raise LimitReached if the work is more than the driver may do, or its input more than Spark lets it have.
    """

    def __init__(
        self,
        link: Bridge,
        query: CompiledQuery,
        schema: StructType,
        threaded: Callable[[], CompiledQuery | None],
    ) -> None:
        self._link = link
        self._graph = query.graph
        self._config = query.config
        self._schema = schema
        self._threaded = threaded
        self._input: list[pa.RecordBatch] | None = None
        self._max_bytes = max(
            _MAX_BYTES,
            _BYTES_PER_INPUT_BYTE * query.config.driver_bytes,
            _BYTES_PER_INPUT_BYTE * query.config.thread_bytes,
        )

    @override
    def table(self, limit: int | None = None) -> pa.Table:
        """In the Arrow types that Spark gives, PythonException as from a worker. limit: of rows."""
        produced = self._graph.result.plan.schema
        return self._run(lambda batches: result_table(_first(batches, limit), produced, self._schema))

    def count(self) -> int:
        """How many rows the result has, none of which is held."""
        return self._run(_row_count)

    def _run(self, consume: Callable[[Iterator[pa.RecordBatch]], R]) -> R:
        control = RunControl(_MAX_ROWS, self._max_bytes)
        with cancellable(self._link.spark, control), self._metered() as meter:
            batches, stages = self._batches(meter)
            control.limit_time(MAX_DRIVER_SECONDS)

            def work() -> R:
                # the settings of a worker, whatever the user's are
                with np.errstate(all="ignore"), decimal.localcontext(decimal.Context()), closing(batches):
                    return consume(batches)

            control.check()
            try:
                with split_progress(stages, self._config, control):
                    return control.controlled(work)()
            except Exception as error:  # a worker would tell Spark, which would raise this
                raised = task_error(error)
                raised.__cause__ = error
                text = "".join(traceback.format_exception(raised))
                raise PythonException(f"In the driver:\n{text}") from None

    @contextmanager
    def _metered(self) -> Iterator[DriverMeter | None]:
        """The meter of a run, if Spark's UI is to show it."""
        reporter = ui_reporter(self._link, self._config)
        if reporter is None:
            yield None
            return
        with reporter.driver_run(self._link) as meter:
            yield meter

    def _batches(
        self, meter: DriverMeter | None
    ) -> tuple[Generator[pa.RecordBatch, None, None], tuple[Stage, ...]]:
        """The result, computed as it is read, and the stages that do that.

        They are run by threads, or the last one by one task over input that Spark collects first.
        """
        threaded = self._threaded()
        if threaded is not None:
            local = LocalExecutor(threaded.graph, threaded.config, meter=meter)
            return local.batches(), threaded.graph.stages
        rows = self._collected_input(None if meter is None else meter.query)
        return self._last_stage(rows, meter), (self._graph.result,)

    def _last_stage(
        self, rows: list[pa.RecordBatch], meter: TaskMeter | None
    ) -> Generator[pa.RecordBatch, None, None]:
        stage = self._graph.result
        tags = {s.stage_id: i for i, s in enumerate(self._graph.stages) if s.stage_id in stage.inputs}
        config = replace(self._config, kept_bytes=min(self._config.kept_bytes, DRIVER_KEPT_BYTES))
        yield from StageRun(stage, config, RowExchange(len(self._graph.stages) - 1, tags), meter)(iter(rows))

    def _collected_input(self, query: int | None) -> list[pa.RecordBatch]:
        """What the last stage's task reads: its number if that is files, or payload rows of the stages before it."""
        if self._graph.result.is_map:
            return [pa.record_batch([pa.array([0])], ["id"])]
        if self._input is None:
            self._input = self._collect_input(self._max_bytes // _INPUT_BYTES_DIVISOR, query)
        return self._input

    def _collect_input(self, limit: int, query: int | None) -> list[pa.RecordBatch]:
        def collect() -> list[pa.RecordBatch]:
            return collect_batches(input_frame(self._link, self._graph, self._config, limit, query))

        batches = unless_result_too_large(collect)
        if batches is None:
            raise LimitReached("Spark's limit of a result")
        tags = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
        if TOO_MUCH in tags or sum(batch.nbytes for batch in batches) > limit:
            raise LimitReached("rows of earlier stages")
        return batches


def _row_count(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(int(batch.num_rows) for batch in batches)


def _first(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The first rows of the batches, reading no batch more than needed; None: all."""
    if limit is None:
        yield from batches
        return
    for batch in batches if limit > 0 else ():
        yield batch.slice(0, limit)
        limit -= batch.num_rows
        if limit <= 0:
            return
