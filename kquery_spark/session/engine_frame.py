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

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2, Row
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import StructType

from kquery_spark.logical import Scan, walk_plan
from kquery_spark.runtime.spark.arrow_result import ArrowResult
from kquery_spark.runtime.spark.driver import DriverStage
from kquery_spark.runtime.spark.rows import makes_rows, rows_of
from kquery_spark.session.bypass import bypass
from kquery_spark.session.failures import unless_too_much
from kquery_spark.session.planning import Part, PlannedQuery
from kquery_spark.session.rescue import attempt
from kquery_spark.session.writer import Writer, with_sources

R = TypeVar("R")


class EngineFrame(ClassicDataFrame):
    """The engine's DataFrame with the plan it came from.

    build: makes Spark's plan of the stages, when something asks for it; true: for an action, so tasks may share the last
    sort. driver: runs the last stage in the driver. result: brings all rows to the driver. rescue: whether Spark may run a
    failed action again. renew: plans the query again, for an action after its tables may have changed.
    """

    def __init__(
        self,
        planned: PlannedQuery,
        parts: tuple[Part, ...],
        build: Callable[[bool], DataFrame],
        driver: DriverStage | None,
        result: ArrowResult | None,
        rescue: bool,
        renew: Callable[[], DataFrame] | None = None,
    ) -> None:
        self._build = build
        self._driver = driver
        self._result = result
        self._rescue = rescue
        self._renew = renew
        self.planned = planned
        self.parts = parts
        self._built: Any = None
        self._shared: DataFrame | None = None
        super().__init__(None, planned.frame.sparkSession)

    @property
    def _jdf(self) -> Any:
        """Spark's own object, which PySpark's methods work with: what is made of it finds an ordered result in one task."""
        if self._built is None:
            self._built = with_sources(self._build(False), self.original)._jdf
        return self._built

    @_jdf.setter
    def _jdf(self, built: Any) -> None:
        self._built = built

    def _look_again(self) -> None:
        """Before an action: plan again where tables of the catalog may have changed since that was done."""
        moment = self.planned.moment
        if moment is None or self._renew is None or self.is_cached or not moment.has_passed():
            return
        found = self._renew()
        self._shared = None
        if isinstance(found, EngineFrame):
            self._build, self._driver, self._result = found._build, found._driver, found._result
            self.parts, self.planned = found.parts, replace(found.planned, frame=self.original)
        else:
            self._build, self._driver, self._result, self.parts = lambda _: found, None, None, ()

    def _acted_on(self) -> DataFrame:
        """The DataFrame for actions, which keep the order of the tasks."""
        if self.is_cached:
            return ClassicDataFrame(self._jdf, self.sparkSession)
        if self._shared is None:
            self._shared = self._build(True)
        return self._shared

    @property
    def schema(self) -> StructType:
        """See pyspark.sql.DataFrame.schema."""
        return self.original.schema

    @property
    def original(self) -> DataFrame:
        """The DataFrame that was accelerated, which Spark alone computes."""
        return self.planned.frame

    def _attempt(self, action: str, engine: Callable[[], R], spark: Callable[[], R]) -> R:
        def looked() -> R:
            self._look_again()
            return engine()

        return attempt(action, looked, spark if self._rescue else None)

    def _table(self) -> pa.Table | None:
        """The rows, made here; None where that is Spark's workers' work, or done and kept there."""
        if self._driver is None or self.is_cached:
            return None
        table = unless_too_much(self._driver.table)
        if table is None:
            self._driver = None  # many more rows than estimated: one of Spark's tasks takes them
        return table

    def _brought(self) -> pa.Table | None:
        """The rows for an action that wants all of them here; None where Spark brings them."""
        table = self._table()
        if table is not None or self._result is None or self.is_cached:
            return table
        return unless_too_much(self._result.table)

    def _rows(self) -> DataFrame:
        """The DataFrame whose rows an action takes: those that are in the driver already, or Spark's of the stages."""
        return self._framed(self._table())

    def _framed(self, table: pa.Table | None) -> DataFrame:
        if table is not None:
            # Arrow does not give Spark a struct that is NULL, of fields that are not
            with contextlib.suppress(pa.ArrowInvalid):
                return self.sparkSession.createDataFrame(table, self.schema)
        return self._acted_on()

    def _size(self) -> int:
        table = self._table()
        return self._acted_on().count() if table is None else table.num_rows

    def _lacks_rows(self) -> bool:
        table = self._table()
        return self._acted_on().isEmpty() if table is None else not table.num_rows

    def _picked(
        self, pick: Callable[[pa.Table], pa.Table] | None, spark: Callable[[DataFrame], list[Row]]
    ) -> list[Row]:
        """Rows that are in the driver, those that ``pick`` leaves; what ``spark`` gives where they are elsewhere.

        pick: None for an argument that is Spark's to refuse.
        """
        table = self._table()
        rows = None if table is None or pick is None else rows_of(pick(table), self.schema)
        return spark(self._framed(table)) if rows is None else rows

    def collect(self) -> list[Row]:
        """See pyspark.sql.DataFrame.collect."""
        return self._attempt("collect", self._collected, self.original.collect)

    def _collected(self) -> list[Row]:
        table = self._brought() if makes_rows(self.schema) else self._table()
        rows = None if table is None else rows_of(table, self.schema)
        return self._framed(table).collect() if rows is None else rows

    def take(self, num: int) -> list[Row]:
        """See pyspark.sql.DataFrame.take."""
        pick = (lambda t: t.slice(0, num)) if _is_count(num) else None
        return self._attempt(
            "take", lambda: self._picked(pick, lambda f: f.take(num)), lambda: self.original.take(num)
        )

    def tail(self, num: int) -> list[Row]:
        """See pyspark.sql.DataFrame.tail."""
        pick = (lambda t: t.slice(max(t.num_rows - num, 0))) if _is_count(num) else None
        return self._attempt(
            "tail", lambda: self._picked(pick, lambda f: f.tail(num)), lambda: self.original.tail(num)
        )

    def count(self) -> int:
        """See pyspark.sql.DataFrame.count."""
        return self._attempt("count", self._size, self.original.count)

    def isEmpty(self) -> bool:
        """See pyspark.sql.DataFrame.isEmpty."""
        return self._attempt("isEmpty", self._lacks_rows, self.original.isEmpty)

    def _collect_as_arrow(self, *args: Any, **kwargs: Any) -> Any:
        """What PySpark makes ``toArrow`` and ``toPandas`` of."""
        table = self._brought()
        if table is not None:
            return _batches(table, *args, **kwargs)
        frame: Any = self._acted_on()
        return frame._collect_as_arrow(*args, **kwargs)

    def toArrow(self) -> Any:
        """See pyspark.sql.DataFrame.toArrow."""
        return self._attempt("toArrow", super().toArrow, self.original.toArrow)

    def toPandas(self) -> Any:
        """See pyspark.sql.DataFrame.toPandas."""
        return self._attempt("toPandas", super().toPandas, self.original.toPandas)

    def _show_string(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> str:
        rows: Callable[[], Any] = self._rows
        spark: Any = self.original
        return self._attempt(
            "show",
            lambda: str(rows()._show_string(n, truncate, vertical)),
            lambda: str(spark._show_string(n, truncate, vertical)),
        )

    def inputFiles(self) -> list[str]:
        """See pyspark.sql.DataFrame.inputFiles."""
        return self.original.inputFiles()

    @property
    def write(self) -> DataFrameWriter:
        """See pyspark.sql.DataFrame.write."""
        return Writer(self._with_sources(), self.original, self._files(), self._rescue)

    def writeTo(self, table: str) -> DataFrameWriterV2:
        """See pyspark.sql.DataFrame.writeTo."""
        return DataFrameWriterV2(self._with_sources(), table)

    def _files(self) -> list[str]:
        """The files that the engine reads."""
        scans = [n for p in self.parts for n in walk_plan(p.optimized) if isinstance(n, Scan)]
        return [file.path for scan in scans for file in getattr(scan.source, "files", ())]

    def _with_sources(self) -> DataFrame:
        """The rows for a write, which keeps the order of the tasks."""
        with bypass():
            self._look_again()
        return with_sources(self._acted_on(), self.original)


def _batches(
    table: pa.Table, split_batches: bool = False, empty_list_if_zero_records: bool = True, **_: Any
) -> list[pa.RecordBatch]:
    """The table as PySpark's ``_collect_as_arrow`` would give it."""
    if not table.num_rows:
        return [] if empty_list_if_zero_records else [pa.RecordBatch.from_pylist([], table.schema)]
    return list(table.to_batches())


def _is_count(num: object) -> bool:
    return type(num) is int and num >= 0
