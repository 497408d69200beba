"""A DataFrame of PySpark's class whose JVM object is made when something asks for it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

SHOW = "_show_string"
"""The method of PySpark's DataFrame that ``show`` prints the result of."""


class LazyDataFrame(ClassicDataFrame):
    """PySpark's methods work with the object of ``built``; ``toArrow``, ``toPandas`` and ``show`` ask the methods below."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(None, spark)

    @abstractmethod
    def built(self) -> DataFrame:
        """The DataFrame that stands for this one in whatever PySpark makes of it; the same one each time."""

    @abstractmethod
    def arrow_table(self) -> pa.Table | None:
        """The rows for ``toArrow`` and ``toPandas``, in the types Spark gives; None where ``arrow_frame`` has them."""

    @abstractmethod
    def arrow_frame(self) -> DataFrame:
        """The DataFrame whose rows ``toArrow`` and ``toPandas`` take where there is no table."""

    @abstractmethod
    def show_text(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> str:
        """What ``show`` prints."""

    @property
    def _jdf(self) -> Any:
        return self.built()._jdf

    @_jdf.setter
    def _jdf(self, _: Any) -> None:
        """PySpark sets it to the None of ``__init__``."""

    def _collect_as_arrow(
        self, split_batches: bool = False, empty_list_if_zero_records: bool = True, *others: Any, **named: Any
    ) -> list[pa.RecordBatch]:
        table = self.arrow_table()
        if table is None:
            frame: Any = self.arrow_frame()
            batches: list[pa.RecordBatch] = frame._collect_as_arrow(
                split_batches, empty_list_if_zero_records, *others, **named
            )
            return batches
        if not table.num_rows:
            return [] if empty_list_if_zero_records else [pa.RecordBatch.from_pylist([], table.schema)]
        return list(table.to_batches())

    def _show_string(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> str:
        return self.show_text(n, truncate, vertical)


def text_of(frame: DataFrame, n: int, truncate: bool | int, vertical: bool) -> str:
    """What ``show`` prints of a DataFrame."""
    shown: Any = frame
    return str(shown._show_string(n, truncate, vertical))


def classic(frame: DataFrame) -> DataFrame:
    """A plain DataFrame of the same JVM object, whose actions are PySpark's own."""
    return ClassicDataFrame(frame._jdf, frame.sparkSession)
