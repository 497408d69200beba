"""Writes of the engine's rows, with three guarantees.

Spark sees the tables that the query reads, so it can refuse to overwrite them. Files that the engine has yet to read are not
deleted. A failed write runs again on Spark only if the failure left nothing behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2, SparkSession

from kquery_spark.sources.files import local_path
from kquery_spark.spark_bridge.frames.intercepted_writer import (
    InterceptedTableWriter,
    InterceptedWriter,
    Write,
)
from kquery_spark.spark_bridge.relations.file_writes import (
    FILE_FORMATS,
    TRANSACTIONAL_FORMATS,
    cleans_up_after_failure,
    remove_empty,
    table_target,
)
from kquery_spark.spark_bridge.session.bridge import same_plan

_TO_A_PATH = FILE_FORMATS | {"save"}
_CREATE_METHODS = frozenset({"create", "replace", "createOrReplace"})


def with_sources(plain: DataFrame, original: DataFrame) -> DataFrame:
    """Return the rows of ``plain``, from a plan in which Spark sees the tables that ``original`` reads.

    Spark refuses to overwrite a table that the query reads, but the engine's plan does not contain these tables. So this
    adds a union with an empty branch of ``original``, which Spark's optimizer removes after that check.
    """
    return original if same_plan(plain, original) else plain.union(original.where("false"))


@dataclass(frozen=True)
class WriteSource:
    """Where the rows of a write come from.

    original: the query as Spark alone runs it. rows: returns the engine's DataFrame and the files that it reads; it plans
    the query again if tables have changed. may_run_again: True if Spark may run a write again after a failure that left
    nothing behind. attempt: calls its first function and, if the engine fails, its second one.
    """

    original: DataFrame
    rows: Callable[[], tuple[DataFrame, Sequence[str]]]
    may_run_again: bool
    attempt: Callable[[Callable[[], Any], Callable[[], Any] | None], Any]

    def writer(self) -> DataFrameWriter:
        """Return a writer of the engine's rows. If a write overwrites its own input, Spark computes the rows.

        In such a write, Spark deletes the files of the directory before the engine's tasks would read them. If Spark
        computes the rows itself, it may have shuffled them before it deletes the files; otherwise it raises its own error.

        The writer belongs to ``original`` until a write begins. Only then is the engine's DataFrame built, and the recorded
        settings are applied to its writer. So the write includes rows that were inserted after ``.write`` was called. Spark
        includes them, too, because it plans the query for each write.
        """
        return InterceptedWriter(self.original, partial(_write, self))

    def table_writer(self, table: str) -> DataFrameWriterV2:
        """Return a writer for ``frame.writeTo(table)``."""
        return InterceptedTableWriter(self.original, table, partial(_write, self))


def _write(source: WriteSource, write: Write) -> Any:
    spark, path = source.original.sparkSession, _path(write)
    frame, files = source.rows()
    if path is not None and write.mode == "overwrite" and contains_any(path, files):
        return write.run_for(source.original)

    run = partial(write.run_for, frame)
    written = _format(spark, write) if source.may_run_again else None
    if written is None or not cleans_up_after_failure(spark, written, write.mode):
        return source.attempt(run, None)

    def run_on_spark() -> Any:
        is_transactional = written.lower() in TRANSACTIONAL_FORMATS
        if path is not None and write.mode not in ("overwrite", "append") and not is_transactional:
            remove_empty(spark, path)  # errorifexists and ignore would find the directory of the failed write
        return write.run_for(source.original)

    return source.attempt(run, run_on_spark)


def _path(write: Write) -> str | None:
    if write.method not in _TO_A_PATH:
        return None
    return str(write.arguments[0]) if write.arguments else write.path_option


def _format(spark: SparkSession, write: Write) -> str | None:
    """Return the format that is written; None if it is unknown."""
    default = write.format or spark.conf.get("spark.sql.sources.default")
    if write.table is not None:
        provider = default if write.method in _CREATE_METHODS else None
        target = table_target(spark, write.table, write.mode or "append", provider)
        return None if target is None else target.format
    if write.method == "insertInto":
        target = table_target(spark, str(write.arguments[0]), write.mode or "append")
        return None if target is None else target.format
    return default if write.method in ("save", "saveAsTable") else write.method


def contains_any(path: str, files: Sequence[str]) -> bool:
    """True if one of the files is the path itself or below it."""
    local = local_path(path)
    if local is None:
        return any(file == path or file.startswith(f"{path.rstrip('/')}/") for file in files)
    directory = os.path.join(os.path.realpath(local), "")
    return any(os.path.join(os.path.realpath(f), "").startswith(directory) for f in files)
