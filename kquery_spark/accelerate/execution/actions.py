"""PySpark's read-only actions for the three places where a query can run: the driver, Spark tasks, and Spark alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from typing_extensions import override

from kquery_spark.run_control import LimitReached
from kquery_spark.runtime.executor import Executor
from kquery_spark.spark_bridge.frames.lazy_dataframe import show_string_of
from kquery_spark.spark_bridge.frames.pyspark_names import create_frame
from kquery_spark.spark_bridge.frames.rows import can_build_rows, rows_of
from kquery_spark.spark_bridge.session.failures import unless_result_too_large


class Actions(Protocol):
    """The actions on one query. Each returns what PySpark's method of the same name returns."""

    def collect(self) -> list[Row]:
        """All rows."""

    def take(self, num: int) -> list[Row]:
        """The first rows."""

    def tail(self, num: int) -> list[Row]:
        """The last rows."""

    def count(self) -> int:
        """The number of rows."""

    def is_empty(self) -> bool:
        """True if the query has no rows."""

    def show_text(self, n: int, truncate: bool | int, vertical: bool) -> str:
        """The string that ``show`` prints."""

    def arrow_table(self) -> pa.Table | None:
        """All rows, in the Arrow types that Spark uses; None if PySpark has to collect them from the DataFrame itself."""


class FrameActions(Actions):
    """PySpark's own actions on a DataFrame, which ``frame`` builds when an action needs it."""

    def __init__(self, frame: Callable[[], DataFrame]) -> None:
        self._frame = frame

    @override
    def collect(self) -> list[Row]:
        return self._frame().collect()

    @override
    def take(self, num: int) -> list[Row]:
        return self._frame().take(num)

    @override
    def tail(self, num: int) -> list[Row]:
        return self._frame().tail(num)

    @override
    def count(self) -> int:
        return self._frame().count()

    @override
    def is_empty(self) -> bool:
        return self._frame().isEmpty()

    @override
    def show_text(self, n: int, truncate: bool | int, vertical: bool) -> str:
        return show_string_of(self._frame(), n, truncate, vertical)

    @override
    def arrow_table(self) -> pa.Table | None:
        return None


class SparkActions(FrameActions):
    """Runs the engine's stages as Spark tasks. ``collect`` and ``arrow_table`` collect payloads if the result's types allow
    it.

    executor: collects the payloads. frame: returns the DataFrame of the same tasks, for all other actions.
    """

    def __init__(self, executor: Executor, original: DataFrame, frame: Callable[[], DataFrame]) -> None:
        super().__init__(frame)
        self._executor = executor
        self._original = original

    @override
    def collect(self) -> list[Row]:
        """Collect as Arrow unless the result has nested values, for which PySpark itself has to make the rows."""
        table = self.arrow_table() if can_build_rows(self._original.schema) else None
        if table is None:
            return super().collect()
        rows = rows_of(table, self._original.schema)
        return _over_table(table, self._original, self._frame).collect() if rows is None else rows

    @override
    def arrow_table(self) -> pa.Table | None:
        try:
            return unless_result_too_large(self._executor.table)
        except LimitReached:
            return None


class DriverActions(FrameActions):
    """Runs the last stage in the driver. Methods raise LimitReached if that is more work than the driver may do.

    frame: returns the DataFrame of Spark tasks. It handles invalid arguments, for which Spark raises the error, and values
    that Spark cannot read from Arrow.
    """

    def __init__(self, executor: Executor, original: DataFrame, frame: Callable[[], DataFrame]) -> None:
        super().__init__(frame)
        self._executor = executor
        self._original = original

    @override
    def collect(self) -> list[Row]:
        table = self._executor.table()
        rows = rows_of(table, self._original.schema)
        return self._actions_on(table).collect() if rows is None else rows

    @override
    def take(self, num: int) -> list[Row]:
        if not _is_row_count(num):
            return super().take(num)
        table = self._executor.table(num)
        rows = rows_of(table, self._original.schema)
        return self._actions_on(table).take(num) if rows is None else rows

    @override
    def tail(self, num: int) -> list[Row]:
        if not _is_row_count(num):
            return super().tail(num)
        table = self._executor.table()
        rows = rows_of(table.slice(max(table.num_rows - num, 0)), self._original.schema)
        return self._actions_on(table).tail(num) if rows is None else rows

    @override
    def count(self) -> int:
        return self._executor.count()

    @override
    def is_empty(self) -> bool:
        return not self._executor.table(1).num_rows

    @override
    def show_text(self, n: int, truncate: bool | int, vertical: bool) -> str:
        """Compute n + 1 rows: Spark shows n rows and needs one more to know whether the result has more."""
        if not _is_row_count(n):
            return super().show_text(n, truncate, vertical)
        return self._actions_on(self._executor.table(n + 1)).show_text(n, truncate, vertical)

    @override
    def arrow_table(self) -> pa.Table | None:
        return self._executor.table()

    def _actions_on(self, table: pa.Table) -> FrameActions:
        return _over_table(table, self._original, self._frame)


def _over_table(table: pa.Table, original: DataFrame, frame: Callable[[], DataFrame]) -> FrameActions:
    """Return PySpark's actions on a table in the driver, or on ``frame`` if Spark cannot read its values from Arrow."""
    try:
        collected = create_frame(original.sparkSession, table, original.schema)
    except pa.ArrowInvalid:  # a NULL struct with fields that are not NULL
        return FrameActions(frame)
    return FrameActions(lambda: collected)


def _is_row_count(number: object) -> bool:
    return type(number) is int and number >= 0
