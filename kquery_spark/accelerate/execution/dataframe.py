"""The DataFrame that ``kquery_plan`` returns: the engine's, with Spark's own as the fallback.

It is a Spark DataFrame like any other; transformations on it give plain DataFrames. Its read-only actions
(``collect``, ``take``, ``head``, ``first``, ``tail``, ``count``, ``isEmpty``, ``show``, ``toPandas``, ``toArrow``)
run once more on Spark alone when the engine fails, with a FallbackWarning that says what failed; an error that the
query causes on its data is so raised by Spark itself. So do writes to files and to tables of Delta and Iceberg, of
which Spark leaves nothing behind when they fail. Other writes, ``foreach`` and iterators never run twice: they may
have had effects by then.

An action ends in one of three ways (``actions.py``): the driver runs the last stage, if that is little work; Spark's tasks
run all stages, and ``collect``, ``toPandas`` and ``toArrow`` take the rows from the workers as Arrow; Spark alone runs the
query.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2, Row
from pyspark.sql.types import StructType
from typing_extensions import override

from kquery_spark.accelerate.execution.execution import Execution
from kquery_spark.spark_bridge.frames.lazy_dataframe import LazyDataFrame
from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table, to_arrow
from kquery_spark.spark_bridge.session.bypass import bypass


class EngineFrame(LazyDataFrame):
    """The engine's DataFrame, whose actions get their rows from an execution."""

    _kquery: Execution

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution, execution.original.sparkSession)

    @property
    def is_cached(self) -> bool:
        """Whether Spark keeps the rows, as PySpark sets it."""
        return self._kquery.cached

    @is_cached.setter
    def is_cached(self, cached: bool) -> None:
        self._kquery.cached = cached

    @property
    @override
    def schema(self) -> StructType:
        return self._kquery.original.schema

    @override
    def collect(self) -> list[Row]:
        return self._kquery.run("collect", lambda actions: actions.collect())

    @override
    def take(self, num: int) -> list[Row]:
        return self._kquery.run("take", lambda actions: actions.take(num))

    @override
    def tail(self, num: int) -> list[Row]:
        return self._kquery.run("tail", lambda actions: actions.tail(num))

    @override
    def count(self) -> int:
        return self._kquery.run("count", lambda actions: actions.count())

    @override
    def isEmpty(self) -> bool:
        return self._kquery.run("isEmpty", lambda actions: actions.is_empty())

    @override
    def toArrow(self) -> Any:
        return self._kquery.attempt(
            "toArrow", lambda: to_arrow(self), lambda: arrow_table(self._kquery.original)
        )

    @override
    def toPandas(self) -> Any:
        return self._kquery.attempt("toPandas", super().toPandas, self._kquery.original.toPandas)

    @override
    def inputFiles(self) -> list[str]:
        return self._kquery.original.inputFiles()

    @property
    @override
    def write(self) -> DataFrameWriter:
        with bypass():
            frame = self._kquery.frame_to_write()
        return self._kquery.write_source().writer(frame)

    @override
    def writeTo(self, table: str) -> DataFrameWriterV2:
        with bypass():
            frame = self._kquery.frame_to_write()
        return self._kquery.write_source().table_writer(frame, table)


def execution_of(frame: DataFrame) -> Execution | None:
    """How a frame of ``kquery_plan`` gets its rows; None for other frames."""
    return frame._kquery if isinstance(frame, EngineFrame) else None
