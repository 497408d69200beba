"""The last stage of a query in the driver, where it is little work: no shuffle, no task of Spark, no worker.

The driver is the user's own process, so the work is bounded while it runs, whatever was estimated: past a number of rows,
bytes or seconds it stops with LimitReached, and Spark's tasks take over.
"""

from __future__ import annotations

import decimal
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql.types import StructType

from kquery_spark.compiler import CompiledQuery
from kquery_spark.compiler.placement import DRIVER_KEPT_BYTES
from kquery_spark.config.engine import EngineConfig
from kquery_spark.run_control import LimitReached, RunControl
from kquery_spark.runtime.local import stream_graph
from kquery_spark.runtime.spark.arrow_result import table_of
from kquery_spark.runtime.spark.frames import gathered
from kquery_spark.runtime.spark.worker import TOO_MUCH, StageRun
from kquery_spark.spark_bridge.arrow_collection import collect_batches
from kquery_spark.spark_bridge.cancellation import cancellable
from kquery_spark.spark_bridge.session import Bridge
from kquery_spark.stages.graph import StageGraph
from kquery_spark.task_errors import task_error

R = TypeVar("R")

DRIVER_SECONDS = 3.0
"""How long the driver works on a query before Spark's tasks take over."""
_MAX_ROWS = 20_000_000  # of all operators together
_MAX_BYTES = 192 << 20
_BYTES_PER_INPUT_BYTE = 8  # that operators may produce where the settings allow much input
_GATHERED_SHARE = 4  # of the bytes, that the rows of earlier stages may take


class DriverStage:
    """The result stage of ``graph``, which has one task, run over the rows that the stages before it give.

    ``schema``: the result's. These rows are kept, as Spark keeps its shuffle files, for further actions on the query.
    ``threads``: the same query cut for threads of the driver, where it has work for several. Methods raise LimitReached
    where the work is more than the driver may do.
    """

    def __init__(
        self,
        link: Bridge,
        graph: StageGraph,
        schema: StructType,
        config: EngineConfig,
        threads: Callable[[], CompiledQuery | None],
    ) -> None:
        self._link = link
        self._graph = graph
        self._schema = schema
        self._config = config
        self._threads = threads
        self._gathered: list[pa.RecordBatch] | None = None
        self._max_bytes = max(
            _MAX_BYTES,
            _BYTES_PER_INPUT_BYTE * config.driver_bytes,
            _BYTES_PER_INPUT_BYTE * config.thread_bytes,
        )

    def table(self, rows: int | None = None) -> pa.Table:
        """The result, or its first rows, in the Arrow types that Spark gives; PythonException as from a worker."""
        made = self._graph.result.plan.schema
        return self._run(lambda batches: table_of(_first(batches, rows), made, self._schema))

    def count(self) -> int:
        """How many rows the result has, none of which is held."""
        return self._run(_row_count)

    def _run(self, consume: Callable[[Iterator[pa.RecordBatch]], R]) -> R:
        control = RunControl(_MAX_ROWS, self._max_bytes)
        with cancellable(self._link.spark, control):
            threaded = self._threads()
            rows = self._rows() if threaded is None else []
            control.limit_time(DRIVER_SECONDS)

            def work() -> R:
                # as in a worker, whatever the user has set here
                with (
                    np.errstate(all="ignore"),
                    decimal.localcontext(decimal.Context()),
                    closing(self._batches(rows) if threaded is None else _by_threads(threaded)) as batches,
                ):
                    return consume(batches)

            control.check()
            try:
                return control.controlled(work)()
            except Exception as error:  # a worker would tell Spark, which would raise this
                raised = task_error(error)
                raised.__cause__ = error
                text = "".join(traceback.format_exception(raised))
                raise PythonException(f"In the driver:\n{text}") from None

    def _batches(self, rows: list[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
        stage = self._graph.result
        tags = {s.stage_id: i for i, s in enumerate(self._graph.stages) if s.stage_id in stage.inputs}
        config = replace(self._config, kept_bytes=min(self._config.kept_bytes, DRIVER_KEPT_BYTES))
        yield from StageRun(stage, config, len(self._graph.stages) - 1, None, tags)(iter(rows))

    def _rows(self) -> list[pa.RecordBatch]:
        if self._graph.result.is_map:
            return [pa.record_batch([pa.array([0])], ["id"])]
        if self._gathered is None:
            limit = self._max_bytes // _GATHERED_SHARE
            frame = gathered(self._link, self._graph, self._config, limit)
            batches = collect_batches(frame)
            tags = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
            if TOO_MUCH in tags or sum(batch.nbytes for batch in batches) > limit:
                raise LimitReached("rows of earlier stages")
            self._gathered = batches
        return self._gathered


def _by_threads(query: CompiledQuery) -> Generator[pa.RecordBatch, None, None]:
    """The result of a query compiled for threads; closing the iterator stops them."""
    with closing(stream_graph(query.graph, query.config)) as stream:
        for batch in stream:
            yield batch.to_arrow()


def _row_count(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(int(batch.num_rows) for batch in batches)


def _first(batches: Iterable[pa.RecordBatch], rows: int | None) -> Iterator[pa.RecordBatch]:
    """The first rows of the batches, none of which is asked for in vain; None: all."""
    if rows is None:
        yield from batches
        return
    for batch in batches if rows > 0 else ():
        yield batch.slice(0, rows)
        rows -= batch.num_rows
        if rows <= 0:
            return
