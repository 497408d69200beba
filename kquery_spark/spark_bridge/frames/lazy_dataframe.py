"""A DataFrame of PySpark's class whose JVM object is created on first use."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kquery_spark.spark_bridge.frames.pyspark_names import ClassicDataFrame

SHOW = "_show_string"
"""The method of PySpark's DataFrame whose result ``show`` prints."""


class FrameRows(Protocol):
    """Provides a lazy DataFrame with its JVM object and its rows."""

    @property
    def base_frame(self) -> DataFrame:
        """The DataFrame for transformations and other methods of PySpark; always the same object."""

    def arrow_table(self) -> pa.Table | None:
        """The rows for ``toArrow`` and ``toPandas`` in Spark's types; None if they must come from ``frame``."""

    def frame(self) -> DataFrame:
        """The DataFrame that ``toArrow`` and ``toPandas`` collect without a table."""

    def show_text(self, n: int, truncate: bool | int, vertical: bool) -> str:
        """Return the string that ``show`` prints."""


class LazyDataFrame(ClassicDataFrame):
    """A DataFrame whose JVM object and rows come from ``_kquery``.

    It has no other attribute that PySpark's DataFrame lacks, because an attribute hides a column with the same name.
    """

    _kquery: FrameRows

    def __new__(cls, *_: Any, **__: Any) -> LazyDataFrame:
        """Skip the method of PySpark 4.0 and 4.1, which requires a JVM object."""
        return object.__new__(cls)

    def __init__(self, rows: FrameRows, spark: SparkSession) -> None:
        self._kquery = rows
        super().__init__(None, spark)

    @property
    def _jdf(self) -> Any:
        return self._kquery.base_frame._jdf

    @_jdf.setter
    def _jdf(self, _: Any) -> None:
        """Ignore the value: PySpark's ``__init__`` sets None."""

    def _collect_as_arrow(self, *options: Any, **named: Any) -> list[pa.RecordBatch]:
        """options: ``split_batches``, which changes nothing here, then ``empty_list_if_zero_records``, which 3.5 lacks."""
        table = self._kquery.arrow_table()
        if table is None:
            frame: Any = self._kquery.frame()
            batches: list[pa.RecordBatch] = frame._collect_as_arrow(*options, **named)
            return batches
        if not table.num_rows:
            no_batch = options[1] if len(options) > 1 else named.get("empty_list_if_zero_records", True)
            return [] if no_batch else [pa.RecordBatch.from_pylist([], table.schema)]
        return list(table.to_batches())

    def _show_string(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> str:
        return self._kquery.show_text(n, truncate, vertical)


def show_string_of(frame: DataFrame, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> str:
    """Return the string that ``show`` prints for a DataFrame."""
    shown: Any = frame
    return str(shown._show_string(n, truncate, vertical))


def as_classic_frame(frame: DataFrame) -> DataFrame:
    """A plain DataFrame of the same JVM object, whose actions are PySpark's own."""
    return ClassicDataFrame(frame._jdf, frame.sparkSession)
