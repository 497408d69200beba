"""Runs one case on Spark and in the engine and says how they differ."""

from __future__ import annotations

import re
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from kquery_spark.accelerate.api import kquery_plan
from kquery_spark.config.engine import EngineConfig
from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.errors import FallbackWarning, PlanError, Unsupported
from kquery_spark.fuzz.generate import LENIENT, Case
from kquery_spark.fuzz.queries import Select
from kquery_spark.fuzz.tables import FuzzTable
from kquery_spark.verify import compare_tables

Kind = Literal[
    "same", "both fail", "invalid", "left to spark", "rows", "schema", "only engine fails", "only spark fails"
]
MISMATCHES = ("rows", "schema", "only engine fails", "only spark fails")
# Spark skips row groups with -0.0 in their dictionaries where 0.0 is looked for, though it holds the two for equal.
READER_OPTIONS = {"parquet.filter.dictionary.enabled": "false"}
Answer: TypeAlias = pa.Table | Exception
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")


@dataclass(frozen=True)
class Outcome:
    """What came of a case. ``signature``: what stays the same while it shrinks; ``local``: without Spark."""

    kind: Kind
    detail: str = ""
    signature: str = ""
    local: bool = False

    @property
    def mismatch(self) -> bool:
        """Whether the engine did not do what Spark did."""
        return self.kind in MISMATCHES


class Oracle:
    """Writes tables once, runs cases on a session, and in this process unless ``local`` is False."""

    def __init__(self, spark: SparkSession, local: bool = True) -> None:
        self._spark = spark
        self._local = local
        self._folder = Path(tempfile.mkdtemp(prefix="kquery-fuzz-"))
        self._registered: dict[str, FuzzTable] = {}
        self._folders: dict[str, Path] = {}
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
            expected = self._expected(case)
            if isinstance(expected, Outcome):
                return expected
            outcome = self._on_spark(case, expected)
            # the engine without Spark has ANSI mode only
            if outcome.mismatch or not self._local or LENIENT.items() <= case.settings.items():
                return outcome
            return self._in_process(case, expected, outcome)
        finally:
            for key in case.settings:
                self._spark.conf.unset(key)

    def _expected(self, case: Case) -> Outcome | Answer:
        try:
            frame = self._spark.sql(case.query.sql())
        except (AnalysisException, ParseException) as error:
            return Outcome("invalid", _sentence(error))
        answer = _answer(frame)
        if isinstance(
            answer, pa.ArrowInvalid
        ):  # PySpark cannot hand over NULL structs of fields that never are
            return Outcome("invalid", _sentence(answer))
        if isinstance(answer, Exception) and "ParquetDictionary.decodeTo" in str(answer):
            return Outcome("invalid", "Spark's lambdas look up NULLs in dictionaries that hold no value")
        return answer

    def _on_spark(self, case: Case, expected: Answer) -> Outcome:
        again = self._spark.sql(case.query.sql())
        try:
            fast = again.transform(kquery_plan, when=case.when)
        except Exception as error:
            if isinstance(expected, Exception):
                return Outcome("both fail", _sentence(expected))
            return _failure("only engine fails", error)
        if fast is again:
            return Outcome("left to spark")
        actual = _answer(fast)
        if again.schema != fast.schema and not isinstance(actual, Exception):
            return Outcome("schema", f"{again.schema.simpleString()} against {fast.schema.simpleString()}")
        return _verdict(case, expected, actual)

    def _in_process(self, case: Case, expected: Answer, on_spark: Outcome) -> Outcome:
        """The same query by ``ExecutionContext`` without Spark; ``on_spark`` when that declines it."""
        config = EngineConfig(parallelism=2).with_settings(case.settings)
        context = ExecutionContext(config=config)
        for table in case.tables:
            context.register_parquet(table.name, self._folders[table.name])
        try:
            actual: Answer = context.sql(case.query.sql()).to_arrow()
        except (Unsupported, PlanError):
            return on_spark
        except Exception as error:
            actual = error
        verdict = _verdict(case, expected, actual)
        return replace(verdict, local=True) if verdict.mismatch else on_spark

    def _register(self, tables: Sequence[FuzzTable]) -> None:
        for table in tables:
            if self._registered.get(table.name) is table:
                continue
            # a new folder each time: workers may remember files by their path
            self._written += 1
            folder = self._folder / f"{self._written}-{table.name}"
            write_pieces(table, folder)
            self._spark.read.options(**READER_OPTIONS).parquet(str(folder)).createOrReplaceTempView(
                table.name
            )
            self._registered[table.name] = table
            self._folders[table.name] = folder


def write_pieces(table: FuzzTable, folder: Path) -> None:
    """The table as one Parquet file a piece."""
    folder.mkdir(parents=True)
    rows = table.data.num_rows
    size = max(1, -(-rows // table.pieces))
    for piece, start in enumerate(range(0, max(rows, 1), size)):
        pq.write_table(table.data.slice(start, size), folder / f"part-{piece}.parquet")


def _verdict(case: Case, expected: Answer, actual: Answer) -> Outcome:
    if isinstance(expected, Exception) and isinstance(actual, Exception):
        return Outcome("both fail", _sentence(expected))
    if isinstance(expected, Exception):
        return _failure("only spark fails", expected)
    if isinstance(actual, Exception):
        return _failure("only engine fails", actual)
    ordered = isinstance(case.query, Select) and bool(case.query.order)
    differences = compare_tables(expected, actual, ordered)
    if differences:
        return Outcome("rows", "; ".join(str(difference) for difference in differences))
    return Outcome("same")


def _answer(frame: DataFrame) -> Answer:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FallbackWarning)
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
