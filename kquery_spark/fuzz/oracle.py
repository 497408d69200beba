"""Runs one case on Spark and in the engine and says how they differ."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from kquery_spark.fuzz.generate import Case
from kquery_spark.fuzz.queries import Select
from kquery_spark.fuzz.tables import FuzzTable
from kquery_spark.session.transform import kquery_plan
from kquery_spark.verify import compare_tables

Kind = Literal[
    "same", "both fail", "invalid", "left to spark", "rows", "schema", "only engine fails", "only spark fails"
]
MISMATCHES = ("rows", "schema", "only engine fails", "only spark fails")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")


@dataclass(frozen=True)
class Outcome:
    """What came of a case. ``signature``: what stays the same while the case shrinks."""

    kind: Kind
    detail: str = ""
    signature: str = ""

    @property
    def mismatch(self) -> bool:
        """Whether the engine did not do what Spark did."""
        return self.kind in MISMATCHES


class Oracle:
    """Writes tables once, runs cases on a session; use as a context manager."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._folder = Path(tempfile.mkdtemp(prefix="kquery-fuzz-"))
        self._registered: dict[str, FuzzTable] = {}
        self._written = 0

    def __enter__(self) -> Oracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._registered:
            self._spark.catalog.dropTempView(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, case: Case) -> Outcome:
        """The outcome of one case; plans are built anew for each side."""
        self._register(case.tables)
        for key, value in case.settings.items():
            self._spark.conf.set(key, value)
        try:
            return self._compare(case)
        finally:
            for key in case.settings:
                self._spark.conf.unset(key)

    def _compare(self, case: Case) -> Outcome:
        sql = case.query.sql()
        try:
            frame = self._spark.sql(sql)
        except (AnalysisException, ParseException) as error:
            return Outcome("invalid", _sentence(error))
        expected = _answer(frame)
        again = self._spark.sql(sql)
        try:
            fast = again.transform(kquery_plan, when="always")
        except Exception as error:
            if isinstance(expected, Exception):
                return Outcome("both fail", _sentence(expected))
            return _failure("only engine fails", error)
        if fast is again:
            return Outcome("left to spark")
        actual = _answer(fast)
        if isinstance(expected, Exception) and isinstance(actual, Exception):
            return Outcome("both fail", _sentence(expected))
        if isinstance(expected, Exception):
            return _failure("only spark fails", expected)
        if isinstance(actual, Exception):
            return _failure("only engine fails", actual)
        if again.schema != fast.schema:
            return Outcome("schema", f"{again.schema.simpleString()} against {fast.schema.simpleString()}")
        ordered = isinstance(case.query, Select) and bool(case.query.order)
        differences = compare_tables(expected, actual, ordered)
        if differences:
            return Outcome("rows", "; ".join(str(difference) for difference in differences))
        return Outcome("same")

    def _register(self, tables: Sequence[FuzzTable]) -> None:
        for table in tables:
            if self._registered.get(table.name) is table:
                continue
            # a new folder each time: workers may remember files by their path
            self._written += 1
            folder = self._folder / f"{self._written}-{table.name}"
            write_pieces(table, folder)
            self._spark.read.parquet(str(folder)).createOrReplaceTempView(table.name)
            self._registered[table.name] = table


def write_pieces(table: FuzzTable, folder: Path) -> None:
    """The table as one Parquet file a piece."""
    folder.mkdir(parents=True)
    rows = table.data.num_rows
    size = max(1, -(-rows // table.pieces))
    for piece, start in enumerate(range(0, max(rows, 1), size)):
        pq.write_table(table.data.slice(start, size), folder / f"part-{piece}.parquet")


def _answer(frame: DataFrame) -> pa.Table | Exception:
    try:
        return frame.toArrow()
    except Exception as error:
        return error


def _failure(kind: Kind, error: Exception) -> Outcome:
    text = str(error)
    condition = _CONDITION.search(text)
    # a worker's own words are the last line of its traceback
    named = re.findall(
        r"^([A-Za-z_][\w.]*(?:Error|Exception|Unsupported|Invalid)\w*): ([^\n]*)", text, re.MULTILINE
    )
    what = f"{named[-1][0]}: {named[-1][1]}" if named else _sentence(error)
    return Outcome(kind, what[:600], condition.group(1) if condition else what.partition(":")[0])


def _sentence(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]
