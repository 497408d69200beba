"""Damaged files through Spark itself, ``kquery_plan`` and ``kq.enable``: the same rows, or an error where Spark raises one.

A child process owns the Spark session, as its driver may be what a damaged file ends. ``kquery_plan`` runs in Spark's
workers and ``kq.enable`` in the driver.
"""

from __future__ import annotations

import math
import os
import re
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tests.sources.compare import rows_of
from tests.sources.mutations.cases import Case, damaged, undamaged
from tests.sources.mutations.children import Child, Write
from tests.sources.mutations.formats import MutatedFormat, Pristine
from tests.sources.mutations.outcomes import (
    FALLBACK,
    INTACT,
    NAMED,
    OTHER_ROWS,
    ROWS,
    ROWS_FOR_ERROR,
    SIGNAL,
    TIMEOUT,
    UNNAMED,
    Outcome,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK, PLAN, ENABLE = "Spark", "kquery_plan", "kq.enable"
_START_SECONDS = 400.0  # of a session
_CASES_PER_SESSION = 500
_OBJECT_NUMBER = re.compile(r"\bo\d+\.")  # of a Java object, in the messages of py4j
_SIGNS_OF_A_SIGNAL = ("exited unexpectedly", "crashed")  # of a Python worker, in Spark's error

Rows = list[tuple[object, ...]]
Answer = Rows | Exception


def campaign(
    fmt: MutatedFormat,
    inputs: Sequence[Pristine],
    seed: int,
    numbers: Sequence[int],
    seconds: float,
    deadline: float = math.inf,
) -> Iterator[Outcome]:
    """The outcomes of reading the cases that are read before the deadline. seconds: the time limit of one case."""
    remaining = list(numbers)
    while remaining and time.monotonic() < deadline:
        batch, done = remaining[:_CASES_PER_SESSION], 0
        with undamaged(inputs):
            child = Child.forked(lambda write, batch=batch: _read_all(fmt, inputs, seed, batch, write))
            for outcome in child.outcomes(max(seconds, _START_SECONDS), deadline):
                done += outcome.way == SPARK  # the last one of a case
                yield outcome
            ending = child.end()
        # A child may finish its cases just after the deadline, when its outcomes are not read anymore.
        if time.monotonic() >= deadline and (ending.is_late or ending.has_finished):
            return
        if done < len(batch):
            yield Outcome(batch[done], "driver", TIMEOUT if ending.is_late else SIGNAL, ending.description)
        remaining = remaining[done + 1 :] if done < len(batch) else remaining[done:]


def _read_all(
    fmt: MutatedFormat, inputs: Sequence[Pristine], seed: int, batch: Sequence[int], write: Write
) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    fmt.prepare()
    spark = _session(fmt)
    try:
        with tempfile.TemporaryDirectory() as directory:
            reader = Reader(
                fmt, spark, {pristine.name: pristine.root for pristine in fmt.make(Path(directory))}
            )
            for number in batch:
                with damaged(fmt, inputs, seed, number) as case:
                    for outcome in reader.outcomes(case):
                        write(outcome.to_line())
    finally:
        spark.stop()


def _session(fmt: MutatedFormat) -> SparkSession:
    from pyspark.sql import SparkSession

    from kquery_spark.config.spark_settings import configure
    from tests.conftest import worker_environment

    os.environ.update(worker_environment())
    builder = configure(SparkSession.builder).master("local[2]").appName("damaged files")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        **fmt.spark_settings,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@dataclass
class Reader:
    """Reads damaged files in three ways. undamaged: the directory of each input without damage."""

    fmt: MutatedFormat
    spark: SparkSession
    undamaged: Mapping[str, Path]
    _intact: dict[tuple[str, str], Rows] = field(default_factory=dict)

    def outcomes(self, case: Case) -> Iterator[Outcome]:
        """How the engine's answers to the queries of a case compare with Spark's."""
        from kquery_spark.fuzz.settings import applied

        root, queries = case.pristine.root, case.pristine.queries
        expected = {query: _answer(lambda query=query: _rows(self._frame(root, query))) for query in queries}
        with applied(self.spark, {"spark.kquery.driverBytes": "0"}):
            yield self._compared(
                case, PLAN, queries[0], expected[queries[0]], self._planned
            )  # workers take longest
            for query in queries:
                yield self._compared(case, ENABLE, query, expected[query], self._enabled)
        is_error = any(isinstance(answer, Exception) for answer in expected.values())
        yield Outcome(case.number, SPARK, NAMED if is_error else ROWS)

    def _planned(self, root: Path, query: str) -> Rows:
        import kquery_spark as kq

        return _rows(self._frame(root, query).transform(kq.kquery_plan, when="always"))

    def _enabled(self, root: Path, query: str) -> Rows:
        import kquery_spark as kq
        from kquery_spark.fuzz.settings import IN_DRIVER, applied

        kq.enable(self.spark, when="always")
        try:
            with applied(self.spark, IN_DRIVER):
                return _rows(self._frame(root, query))
        finally:
            kq.disable(self.spark)

    def _frame(self, root: Path, query: str) -> DataFrame:
        self.fmt.frame(self.spark, root).createOrReplaceTempView("t")
        return self.spark.sql(query)

    def _compared(
        self, case: Case, way: str, query: str, expected: Answer, run: Callable[[Path, str], Rows]
    ) -> Outcome:
        """Compares an answer of the engine with Spark's own; warnings of a fallback may hide a signal."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ours = _answer(lambda: run(case.pristine.root, query))
        warned = " ".join(str(warning.message) for warning in caught)
        message = f"{ours if isinstance(ours, Exception) else ''} {warned}"
        kind, detail = _judged(case, expected, ours, message)
        if kind == ROWS_FOR_ERROR and ours == self._before_damage(case, query):
            kind = INTACT
        elif kind == ROWS and warned:
            kind = FALLBACK
        return Outcome(case.number, way, kind, f"{query}: {detail} {message}"[:3000])

    def _before_damage(self, case: Case, query: str) -> Rows:
        key = (case.pristine.name, query)
        if key not in self._intact:
            self._intact[key] = _rows(self._frame(self.undamaged[case.pristine.name], query))
        return self._intact[key]


def _rows(frame: DataFrame) -> Rows:
    table = frame.toArrow()
    return rows_of(pa.table({f"c{i}": column for i, column in enumerate(table.columns)}))


def _answer(run: Callable[[], Rows]) -> Answer:
    try:
        return run()
    except Exception as error:
        return error


def _causes(error: Exception) -> str:
    """The messages of a Java error and its causes, without their stack traces."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith(("\t", "    at"))]
    return " / ".join(lines)[:900]


def _is_same_error(ours: Exception, expected: Answer) -> bool:
    """True if Spark raises the same error by itself, for example while it infers the schema, before the engine reads."""
    if not isinstance(expected, Exception):
        return False
    messages = {_OBJECT_NUMBER.sub("", _causes(error)) for error in (ours, expected)}
    return len(messages) == 1


def _judged(case: Case, expected: Answer, ours: Answer, message: str) -> tuple[str, str]:
    if any(sign in message for sign in _SIGNS_OF_A_SIGNAL):
        return SIGNAL, ""
    if isinstance(ours, Exception):
        spark = _causes(expected) if isinstance(expected, Exception) else f"{len(expected)} rows"
        is_named = case.is_named_in(message) or _is_same_error(ours, expected)
        return (NAMED if is_named else UNNAMED), f"Spark gives {spark}"
    if isinstance(expected, Exception):
        return ROWS_FOR_ERROR, f"{len(ours)} rows, Spark raises {_causes(expected)}"
    if ours != expected:
        wrong = [pair for pair in zip(ours, expected, strict=False) if pair[0] != pair[1]]
        return (
            OTHER_ROWS,
            f"{len(ours)} rows, Spark gives {len(expected)}; the first differences: {str(wrong[:2])[:900]}",
        )
    return ROWS, ""
