"""The DataFrame that ``kquery_plan`` returns: the engine's, with Spark's own kept at hand.

It is a Spark DataFrame like any other; transformations on it give plain DataFrames. Its read-only actions
(``collect``, ``take``, ``head``, ``first``, ``tail``, ``count``, ``isEmpty``, ``show``, ``toPandas``, ``toArrow``)
run once more on Spark alone when the engine fails, with a FallbackWarning that says what failed; an error that the
query causes on its data is so raised by Spark itself. So do writes to files, of which Spark leaves nothing behind when they
fail. Other writes, ``foreach`` and iterators never run twice: they may have had effects by then.

Where the last stage is little work, these actions run it in the driver, to which they bring the result anyway. Those that
want all rows there (``collect``, ``toPandas``, ``toArrow``) take them from the workers as Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2, Row
from pyspark.sql.types import StructType

from kquery_spark.accelerate.execution.execution import Execution
from kquery_spark.accelerate.execution.writer import writer_of
from kquery_spark.spark_bridge.bypass import bypass
from kquery_spark.spark_bridge.lazy_dataframe import LazyDataFrame
from kquery_spark.spark_bridge.rows import makes_rows, rows_of


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
    def schema(self) -> StructType:
        """See pyspark.sql.DataFrame.schema."""
        return self._kquery.original.schema

    def collect(self) -> list[Row]:
        """See pyspark.sql.DataFrame.collect."""
        execution = self._kquery

        def collected() -> list[Row]:
            table = execution.arrow_table() if makes_rows(self.schema) else execution.table()
            rows = None if table is None else rows_of(table, self.schema)
            return execution.frame(table).collect() if rows is None else rows

        return execution.attempt("collect", collected, execution.original.collect)

    def take(self, num: int) -> list[Row]:
        """See pyspark.sql.DataFrame.take."""
        return self._some("take", num, lambda table: table.slice(0, num), first=True)

    def tail(self, num: int) -> list[Row]:
        """See pyspark.sql.DataFrame.tail."""
        return self._some("tail", num, lambda table: table.slice(max(table.num_rows - num, 0)))

    def _some(
        self, action: str, num: int, pick: Callable[[pa.Table], pa.Table], first: bool = False
    ) -> list[Row]:
        """The rows that ``pick`` leaves of those in the driver; what the action gives where they are elsewhere.

        first: they are the first ones, so no more are made.
        """
        execution = self._kquery

        def some() -> list[Row]:
            counts = type(num) is int and num >= 0  # other arguments are Spark's to refuse
            table = execution.table(num if first and counts else None) if counts else None
            rows = rows_of(pick(table), self.schema) if table is not None else None
            return getattr(execution.frame(table), action)(num) if rows is None else rows

        return execution.attempt(action, some, lambda: getattr(execution.original, action)(num))

    def count(self) -> int:
        """See pyspark.sql.DataFrame.count."""
        execution = self._kquery

        def size() -> int:
            rows = execution.count()
            return execution.frame().count() if rows is None else rows

        return execution.attempt("count", size, execution.original.count)

    def isEmpty(self) -> bool:
        """See pyspark.sql.DataFrame.isEmpty."""
        execution = self._kquery

        def lacks_rows() -> bool:
            table = execution.table(1)
            return execution.frame().isEmpty() if table is None else not table.num_rows

        return execution.attempt("isEmpty", lacks_rows, execution.original.isEmpty)

    def toArrow(self) -> Any:
        """See pyspark.sql.DataFrame.toArrow."""
        return self._kquery.attempt("toArrow", super().toArrow, self._kquery.original.toArrow)

    def toPandas(self) -> Any:
        """See pyspark.sql.DataFrame.toPandas."""
        return self._kquery.attempt("toPandas", super().toPandas, self._kquery.original.toPandas)

    def inputFiles(self) -> list[str]:
        """See pyspark.sql.DataFrame.inputFiles."""
        return self._kquery.original.inputFiles()

    @property
    def write(self) -> DataFrameWriter:
        """See pyspark.sql.DataFrame.write."""
        execution = self._kquery
        with bypass():
            frame = execution.frame_to_write()
        return writer_of(frame, execution.original, execution.files(), execution.rescue)

    def writeTo(self, table: str) -> DataFrameWriterV2:
        """See pyspark.sql.DataFrame.writeTo."""
        with bypass():
            return DataFrameWriterV2(self._kquery.frame_to_write(), table)


def execution_of(frame: DataFrame) -> Execution | None:
    """How a frame of ``kquery_plan`` gets its rows; None for other frames."""
    return frame._kquery if isinstance(frame, EngineFrame) else None
