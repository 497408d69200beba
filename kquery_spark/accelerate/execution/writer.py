"""Writing what the engine computes: Spark must see what is read, what is read must not be gone before it is, and a
write that failed may run again where nothing of it is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2, SparkSession

from kquery_spark.sources.files import local_path
from kquery_spark.spark_bridge.file_writes import (
    FILE_FORMATS,
    TRANSACTIONAL_FORMATS,
    leaves_nothing,
    remove_empty,
    table_target,
)
from kquery_spark.spark_bridge.intercepted_writer import InterceptedTableWriter, InterceptedWriter, Write
from kquery_spark.spark_bridge.session import same_plan

_TO_A_PATH = FILE_FORMATS | {"save"}
_MAKES_A_TABLE = frozenset({"create", "replace", "createOrReplace"})


def with_sources(plain: DataFrame, original: DataFrame) -> DataFrame:
    """The rows of ``plain`` from a plan in which Spark sees the tables that ``original`` reads.

    Spark refuses to overwrite a table that the query reads; from the engine's plan alone it could not
    tell. The added branch is empty, and Spark's optimizer takes it out again.
    """
    return original if same_plan(plain, original) else plain.union(original.where("false"))


@dataclass(frozen=True)
class WriteSource:
    """Where the rows of a write come from.

    original: the query, which Spark alone can run. files: what the engine reads. may_run_again: whether a write that
    the engine fails runs again with Spark's rows, if nothing is left of it. attempt: runs the first, or after a failure
    of the engine the second.
    """

    original: DataFrame
    files: Sequence[str]
    may_run_again: bool
    attempt: Callable[[Callable[[], Any], Callable[[], Any] | None], Any]

    def writer(self, frame: DataFrame) -> DataFrameWriter:
        """A writer of ``frame``, the engine's, that lets Spark compute the rows that overwrite the folder they come from.

        Spark deletes what is in the folder before the engine's tasks read it. Its own shuffles may have read it by then,
        or it fails, too: whichever it is.
        """
        return InterceptedWriter(frame, partial(_write, self))

    def table_writer(self, frame: DataFrame, table: str) -> DataFrameWriterV2:
        """What ``writeTo`` gives."""
        return InterceptedTableWriter(frame, table, partial(_write, self))


def _write(source: WriteSource, write: Write) -> Any:
    spark, path = source.original.sparkSession, _path(write)
    if path is not None and write.mode == "overwrite" and is_or_holds(path, source.files):
        return write.run_for(source.original)

    def again() -> Any:
        if path is not None and write.mode not in ("overwrite", "append") and _is_of_files(spark, write):
            remove_empty(spark, path)  # or it would exist already
        return write.run_for(source.original)

    possible = source.may_run_again and leaves_nothing(spark, _format(spark, write), write.mode)
    return source.attempt(write.run, again if possible else None)


def _path(write: Write) -> str | None:
    if write.method not in _TO_A_PATH:
        return None
    return str(write.arguments[0]) if write.arguments else write.path_option


def _is_of_files(spark: SparkSession, write: Write) -> bool:
    written = _format(spark, write)
    return written is not None and written.lower() not in TRANSACTIONAL_FORMATS


def _format(spark: SparkSession, write: Write) -> str | None:
    """What is written; None where that is not for this to know."""
    default = write.format or spark.conf.get("spark.sql.sources.default")
    if write.table is not None:
        made = default if write.method in _MAKES_A_TABLE else None
        target = table_target(spark, write.table, write.mode or "append", made)
        return None if target is None else target.format
    if write.method == "insertInto":
        target = table_target(spark, str(write.arguments[0]), write.mode or "append")
        return None if target is None else target.format
    return default if write.method in ("save", "saveAsTable") else write.method


def is_or_holds(path: str, files: Sequence[str]) -> bool:
    """Whether one of the files is, or is below, the path."""
    local = local_path(path)
    if local is None:
        return any(file == path or file.startswith(f"{path.rstrip('/')}/") for file in files)
    folder = os.path.join(os.path.realpath(local), "")
    return any(os.path.join(os.path.realpath(f), "").startswith(folder) for f in files)
