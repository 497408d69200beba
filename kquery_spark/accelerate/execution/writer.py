"""Writing what the engine computes: Spark must see what is read, what is read must not be gone before it is, and a
write that failed may run again where nothing of it is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter

from kquery_spark.sources.files import local_path
from kquery_spark.spark_bridge.file_writes import (
    FILE_FORMATS,
    format_of_table,
    leaves_nothing,
    remove_empty,
)
from kquery_spark.spark_bridge.intercepted_writer import InterceptedWriter, Write
from kquery_spark.spark_bridge.session import same_plan

_TO_A_PATH = FILE_FORMATS | {"save"}


def with_sources(plain: DataFrame, original: DataFrame) -> DataFrame:
    """The rows of ``plain`` from a plan in which Spark sees the tables that ``original`` reads.

    Spark refuses to overwrite a table that the query reads; from the engine's plan alone it could not
    tell. The added branch is empty, and Spark's optimizer takes it out again.
    """
    return original if same_plan(plain, original) else plain.union(original.where("false"))


def writer_of(
    frame: DataFrame,
    original: DataFrame,
    files: Sequence[str],
    may_run_again: bool,
    attempt: Callable[[Callable[[], Any], Callable[[], Any] | None], Any],
) -> DataFrameWriter:
    """A writer of ``frame`` that lets Spark compute the rows that overwrite the folder they come from.

    Spark deletes what is in the folder before the engine's tasks read it. Its own shuffles may have read it by then, or it
    fails, too: whichever it is.

    files: what the engine reads. may_run_again: whether a write of files that the engine fails runs again with Spark's rows.
    attempt: runs the first, or after a failure of the engine the second.
    """
    return InterceptedWriter(frame, partial(_write, _Rows(original, files, may_run_again, attempt)))


@dataclass(frozen=True)
class _Rows:
    """Where the rows of a writer come from, see ``writer_of``."""

    original: DataFrame
    files: Sequence[str]
    may_run_again: bool
    attempt: Callable[[Callable[[], Any], Callable[[], Any] | None], Any]


def _write(rows: _Rows, write: Write) -> Any:
    spark, path = rows.original.sparkSession, _path(write)
    if path is not None and write.mode == "overwrite" and _is_or_holds(path, rows.files):
        return write.run_for(rows.original)

    def again() -> Any:
        if path is not None and write.mode not in ("overwrite", "append"):
            remove_empty(spark, path)  # or it would exist already
        return write.run_for(rows.original)

    possible = rows.may_run_again and leaves_nothing(spark, _format(rows, write), write.mode)
    return rows.attempt(write.run, again if possible else None)


def _path(write: Write) -> str | None:
    if write.method not in _TO_A_PATH:
        return None
    return str(write.arguments[0]) if write.arguments else write.path_option


def _format(rows: _Rows, write: Write) -> str | None:
    """What is written; None where that is not for this to know."""
    spark = rows.original.sparkSession
    if write.method == "insertInto":
        return format_of_table(spark, str(write.arguments[0]))
    if write.method in ("save", "saveAsTable"):
        return write.format or spark.conf.get("spark.sql.sources.default")
    return write.method


def _is_or_holds(path: str, files: Sequence[str]) -> bool:
    """Whether one of the files is, or is below, the path."""
    local = local_path(path)
    if local is None:
        return any(file == path or file.startswith(f"{path.rstrip('/')}/") for file in files)
    folder = os.path.join(os.path.realpath(local), "")
    return any(os.path.join(os.path.realpath(f), "").startswith(folder) for f in files)
