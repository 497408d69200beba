"""The DataFrame that ``kquery_plan`` returns. Its actions run in the engine and fall back to Spark if the engine fails.

It is a Spark DataFrame like any other; transformations on it return plain DataFrames. If the engine fails, Spark alone runs
the read-only actions (``collect``, ``take``, ``head``, ``first``, ``tail``, ``count``, ``isEmpty``, ``show``, ``toPandas``,
``toArrow``) again, and a FallbackWarning says what failed. In this way, Spark itself raises the errors of a query on its
data. Writes to files and to Delta and Iceberg tables run again, too, because Spark leaves nothing behind when they fail.
Other writes, ``foreach``, and iterators never run twice, because they may already have had effects.

An action runs in one of three ways (``actions.py``): the driver runs the last stage, if it has little work to do; Spark
tasks run all stages, and ``collect``, ``toPandas`` and ``toArrow`` collect the rows from the workers as Arrow; or Spark
alone runs the query.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2, Row
from pyspark.sql.types import StructType
from typing_extensions import override

from kquery_spark.accelerate.execution.execution import Execution
from kquery_spark.spark_bridge.frames.lazy_dataframe import LazyDataFrame
from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table, to_arrow


class EngineFrame(LazyDataFrame):
    """A DataFrame whose actions run through an ``Execution``."""

    _kquery: Execution

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution, execution.original.sparkSession)

    @property
    def is_cached(self) -> bool:
        """True if Spark caches the rows; PySpark sets it in ``cache`` and ``persist``."""
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
        return self._kquery.write_source().writer()

    @override
    def writeTo(self, table: str) -> DataFrameWriterV2:
        return self._kquery.write_source().table_writer(table)


def execution_of(frame: DataFrame) -> Execution | None:
    """Return the execution of a DataFrame of ``kquery_plan``; None for other DataFrames."""
    return frame._kquery if isinstance(frame, EngineFrame) else None
