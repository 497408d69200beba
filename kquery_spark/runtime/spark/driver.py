"""The last stage of a query in the driver, where it is little work: no shuffle, no further task, no worker."""

from __future__ import annotations

import decimal
import traceback
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from kquery_spark.config.engine import EngineConfig
from kquery_spark.frontends.catalyst.jvm import Jvm
from kquery_spark.runtime.spark.arrow_result import table_of
from kquery_spark.runtime.spark.frames import gathered
from kquery_spark.runtime.spark.worker import StageRun
from kquery_spark.stages.graph import StageGraph


class DriverStage:
    """The result stage of ``graph``, which has one task, run over the rows that the stages before it give.

    ``schema``: the result's. These rows are kept, as Spark keeps its shuffle files, for further actions on the query.
    """

    def __init__(
        self, spark: SparkSession, jvm: Jvm, graph: StageGraph, schema: StructType, config: EngineConfig
    ) -> None:
        self._spark = spark
        self._jvm = jvm
        self._graph = graph
        self._schema = schema
        self._config = config
        self._gathered: list[pa.RecordBatch] | None = None

    def table(self) -> pa.Table:
        """The result in the Arrow types that Spark gives; PythonException for what goes wrong, as from a worker."""
        stage = self._graph.result
        if stage.is_map:
            rows = [pa.record_batch([pa.array([0])], ["id"])]
        else:
            rows = self._rows()
        tags = {s.stage_id: i for i, s in enumerate(self._graph.stages) if s.stage_id in stage.inputs}
        run = StageRun(stage, self._config, len(self._graph.stages) - 1, None, tags)
        try:
            # as in a worker, whatever the user has set here
            with np.errstate(all="ignore"), decimal.localcontext(decimal.Context()):
                return table_of(run(iter(rows)), stage.plan.schema, self._schema)
        except Exception:  # a worker would tell Spark, which would raise this
            raise PythonException(f"In the driver:\n{traceback.format_exc()}") from None

    def _rows(self) -> list[pa.RecordBatch]:
        if self._gathered is None:
            frame: Any = gathered(self._spark, self._jvm, self._graph, self._config)
            self._gathered = frame._collect_as_arrow()
        return self._gathered
