"""The DataFrame that ``kquery_plan`` returns: the engine's, with Spark's own kept at hand.

It is a Spark DataFrame like any other; transformations on it give plain DataFrames. Its read-only actions
(``collect``, ``take``, ``head``, ``first``, ``tail``, ``count``, ``isEmpty``, ``show``, ``toPandas``, ``toArrow``)
run once more on Spark alone when the engine fails, with a FallbackWarning that says what failed. Writes,
``foreach`` and iterators never run twice: they may have had effects by then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2, Row
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from kquery_spark.session.bypass import bypass
from kquery_spark.session.failures import SPARK_ERRORS, engine_failure, warn_user
from kquery_spark.session.planning import Part, PlannedQuery

R = TypeVar("R")


class EngineFrame(ClassicDataFrame):
    """``fast`` with the plan it came from; ``rescue``: whether Spark may run a failed read-only action again."""

    def __new__(cls, *args: Any) -> EngineFrame:
        """In PySpark 4.1 a classic DataFrame's ``__new__`` takes no other arguments than its own."""
        return object.__new__(cls)

    def __init__(self, fast: DataFrame, planned: PlannedQuery, parts: tuple[Part, ...], rescue: bool) -> None:
        super().__init__(fast._jdf, fast.sparkSession)
        self.planned = planned
        self.parts = parts
        self._rescue = rescue

    @property
    def original(self) -> DataFrame:
        """The DataFrame that was accelerated, which Spark alone computes."""
        return self.planned.frame

    def _attempt(self, action: str, engine: Callable[[], R], spark: Callable[[], R]) -> R:
        try:
            return engine()
        except SPARK_ERRORS as error:
            failure = engine_failure(error) if self._rescue else None
            if failure is None:
                raise
            message = f"the engine failed in {action}, so Spark runs the query again: {failure}"
            warn_user(message)
            with bypass():
                return spark()

    def collect(self) -> list[Row]:
        """See pyspark.sql.DataFrame.collect."""
        return self._attempt("collect", super().collect, self.original.collect)

    def take(self, num: int) -> list[Row]:
        """See pyspark.sql.DataFrame.take."""
        return self._attempt(
            "take", lambda: super(EngineFrame, self).take(num), lambda: self.original.take(num)
        )

    def tail(self, num: int) -> list[Row]:
        """See pyspark.sql.DataFrame.tail."""
        return self._attempt(
            "tail", lambda: super(EngineFrame, self).tail(num), lambda: self.original.tail(num)
        )

    def count(self) -> int:
        """See pyspark.sql.DataFrame.count."""
        return self._attempt("count", super().count, self.original.count)

    def isEmpty(self) -> bool:
        """See pyspark.sql.DataFrame.isEmpty."""
        return self._attempt("isEmpty", super().isEmpty, self.original.isEmpty)

    def toArrow(self) -> Any:
        """See pyspark.sql.DataFrame.toArrow."""
        return self._attempt("toArrow", super().toArrow, self.original.toArrow)

    def toPandas(self) -> Any:
        """See pyspark.sql.DataFrame.toPandas."""
        return self._attempt("toPandas", super().toPandas, self.original.toPandas)

    def _show_string(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> str:
        engine = super()._show_string
        spark: Any = self.original
        return self._attempt(
            "show",
            lambda: engine(n, truncate, vertical),
            lambda: str(spark._show_string(n, truncate, vertical)),
        )

    @property
    def write(self) -> DataFrameWriter:
        """See pyspark.sql.DataFrame.write."""
        return DataFrameWriter(self._with_sources())

    def writeTo(self, table: str) -> DataFrameWriterV2:
        """See pyspark.sql.DataFrame.writeTo."""
        return DataFrameWriterV2(self._with_sources(), table)

    def _with_sources(self) -> DataFrame:
        """The same rows from a plan in which Spark sees the tables that are read.

        Spark refuses to overwrite a table that the query reads; from the engine's plan alone it could not
        tell. The added branch is empty, and Spark's optimizer takes it out again.
        """
        plain = ClassicDataFrame(self._jdf, self.sparkSession)
        return plain.union(self.original.where("false"))
