"""Runs input files: a session a file, each statement as setup or as a query that is judged."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tests.fuzz.sql_inputs.judge import CaseOutcome, judge
from tests.fuzz.sql_inputs.modes import (
    SKIPPED_DIRECTORIES,
    FileWriter,
    Mode,
    create_functions,
    session_settings,
    without_udf,
)
from tests.fuzz.sql_inputs.parse import SqlInput, parse_file
from tests.fuzz.sql_inputs.tables import remove_leftovers

_COMMENTS = re.compile(r"\s*(?:/\*.*?\*/\s*|--[^\n]*\n\s*)*", re.DOTALL)
_QUERY = re.compile(r"[\s(]*(?:SELECT|WITH|VALUES|FROM|TABLE|MAP|REDUCE)\b", re.IGNORECASE)
_WRITES = re.compile(r"\bINSERT\s+(?:INTO|OVERWRITE)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Result:
    """The outcome of one statement and where it stands."""

    file: str
    mode: Mode
    settings: dict[str, str]
    number: int
    statement: str
    outcome: CaseOutcome

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def is_query(statement: str) -> bool:
    """Whether a statement only reads: what it gives can be run a second time and compared."""
    match = _COMMENTS.match(statement)
    text = statement[match.end() :] if match else statement
    return bool(_QUERY.match(text)) and not _WRITES.search(text)


def run_inputs(
    spark: SparkSession,
    directory: Path,
    paths: Sequence[Path],
    modes: Sequence[Mode],
    every_dimension: bool = False,
    extra: dict[str, str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Iterator[Result]:
    """Results of all statements of the files, in every mode. ``extra``: settings of all sessions."""
    for path in paths:
        source = parse_file(directory, path)
        if source.directory in SKIPPED_DIRECTORIES or not source.for_spark:
            continue
        for mode in modes:
            for settings in source.combinations(every_dimension):
                started, differences = time.monotonic(), 0
                for result in _run_file(spark, source, mode, settings, extra or {}):
                    differences += result.outcome.kind == "differ"
                    yield result
                words = f", {differences} differ" if differences else ""
                seconds = time.monotonic() - started
                progress(
                    f"{source.name} ({mode}): {len(source.statements)} statements, {seconds:.0f} s{words}"
                )


def _run_file(
    spark: SparkSession, source: SqlInput, mode: Mode, settings: dict[str, str], extra: dict[str, str]
) -> Iterator[Result]:
    """One file once, in a session of its own."""
    session = spark.newSession()
    files = Path(tempfile.mkdtemp(prefix="kquery-inputs-"))
    writer = FileWriter(session, files) if mode == "parquet" else None
    try:
        create_functions(session, source)
        for key, value in (session_settings(source, mode) | extra | settings).items():
            _run_setup(session, f"SET {key}={value}")
        for number, statement in enumerate(source.statements, 1):
            text = without_udf(source, statement)
            outcome = run_statement(session, text, writer)
            yield Result(source.name, mode, settings, number, text, outcome)
    finally:
        remove_leftovers(session)
        shutil.rmtree(files, ignore_errors=True)


def run_statement(session: SparkSession, statement: str, writer: FileWriter | None = None) -> CaseOutcome:
    """Run one statement: a query on both sides, anything else as setup."""
    text = writer.rewrite(statement) if writer is not None else statement
    try:
        frame = session.sql(text)
    except Exception as error:
        return CaseOutcome("rejected", " ".join(str(error).split())[:200])
    if is_query(text):
        return judge(frame)
    if writer is not None:
        writer.materialize(text)
    return CaseOutcome("command")


def _run_setup(session: SparkSession, statement: str) -> None:
    try:
        session.sql(statement)
    except Exception:  # a setting that this version of Spark does not have
        return
