"""The last stage of a query in the driver, where it is little work: no shuffle, no task of Spark, no worker."""

from __future__ import annotations

import decimal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from kquery_spark.config.engine import EngineConfig
from kquery_spark.frontends.catalyst.jvm import Jvm
from kquery_spark.runtime.local import run_graph
from kquery_spark.runtime.spark.arrow_result import table_of
from kquery_spark.runtime.spark.frames import gathered
from kquery_spark.runtime.spark.worker import StageRun
from kquery_spark.stages.graph import StageGraph


@dataclass(frozen=True)
class Threaded:
    """A query whose tasks are threads of the driver."""

    graph: StageGraph
    config: EngineConfig

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The result, once all tasks are done."""
        return (batch.to_arrow() for batch in run_graph(self.graph, self.config).batches)


class DriverStage:
    """The result stage of ``graph``, which has one task, run over the rows that the stages before it give.

    ``schema``: the result's. These rows are kept, as Spark keeps its shuffle files, for further actions on the query.
    ``threads``: the same query cut for threads of the driver, where it has work for several.
    """

    def __init__(
        self,
        spark: SparkSession,
        jvm: Jvm,
        graph: StageGraph,
        schema: StructType,
        config: EngineConfig,
        threads: Callable[[], Threaded | None],
    ) -> None:
        self._spark = spark
        self._jvm = jvm
        self._graph = graph
        self._schema = schema
        self._config = config
        self._threads = threads
        self._gathered: list[pa.RecordBatch] | None = None

    def table(self) -> pa.Table:
        """The result in the Arrow types that Spark gives; PythonException for what goes wrong, as from a worker."""
        threaded = self._threads()
        rows = self._rows() if threaded is None else []
        try:
            # as in a worker, whatever the user has set here
            with np.errstate(all="ignore"), decimal.localcontext(decimal.Context()):
                made = self._run(rows) if threaded is None else threaded.batches()
                return table_of(made, self._graph.result.plan.schema, self._schema)
        except Exception:  # a worker would tell Spark, which would raise this
            raise PythonException(f"In the driver:\n{traceback.format_exc()}") from None

    def _run(self, rows: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stage = self._graph.result
        tags = {s.stage_id: i for i, s in enumerate(self._graph.stages) if s.stage_id in stage.inputs}
        return StageRun(stage, self._config, len(self._graph.stages) - 1, None, tags)(iter(rows))

    def _rows(self) -> list[pa.RecordBatch]:
        if self._graph.result.is_map:
            return [pa.record_batch([pa.array([0])], ["id"])]
        if self._gathered is None:
            frame: Any = gathered(self._spark, self._jvm, self._graph, self._config)
            self._gathered = frame._collect_as_arrow()
        return self._gathered
