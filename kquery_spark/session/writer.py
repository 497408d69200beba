"""Writing what the engine computes: Spark must see what is read, what is read must not be gone before it is, and a
write that failed may run again where nothing of it is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.readwriter import DataFrameWriter

from kquery_spark.session.file_writes import FILE_FORMATS, format_of_table, leaves_nothing, remove_empty
from kquery_spark.session.rescue import attempt
from kquery_spark.sources.files import local_path

_TO_A_PATH = FILE_FORMATS | {"save"}
_SETTINGS = frozenset(
    {"mode", "format", "option", "options", "partitionBy", "bucketBy", "sortBy", "clusterBy"}
)


def with_sources(plain: DataFrame, original: DataFrame) -> DataFrame:
    """The rows of ``plain`` from a plan in which Spark sees the tables that ``original`` reads.

    Spark refuses to overwrite a table that the query reads; from the engine's plan alone it could not
    tell. The added branch is empty, and Spark's optimizer takes it out again.
    """
    if plain._jdf is original._jdf:
        return original
    return plain.union(original.where("false"))


class Writer(DataFrameWriter):
    """Writes ``frame``, but lets Spark compute the rows that overwrite the folder they come from.

    Spark deletes what is in the folder before the engine's tasks read it. Its own shuffles may have read it by then, or it
    fails, too: whichever it is.

    files: what the engine reads. rescue: whether a write of files that the engine fails runs again with Spark's rows.
    """

    def __init__(self, frame: DataFrame, original: DataFrame, files: Sequence[str], rescue: bool) -> None:
        super().__init__(frame)
        self._jwrite: Any = _JvmWriter(self._jwrite, original, files, rescue)


class _JvmWriter:
    """Spark's writer, as PySpark calls it; what is set is remembered for the other one."""

    def __init__(self, writer: Any, original: DataFrame, files: Sequence[str], rescue: bool) -> None:
        self._writer = writer
        self._original = original
        self._spark = original.sparkSession
        self._files = files
        self._rescue = rescue
        self._set: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if name in _SETTINGS:
                self._writer = getattr(self._writer, name)(*args)
                self._set.append((name, args))
                return self
            return self._write(name, args)

        return call

    def _write(self, name: str, args: tuple[Any, ...]) -> Any:
        mode, path = self._mode(), self._path(name, args)
        if path is not None and mode == "overwrite" and self._reads(path):
            return self._by_spark(name, args)

        def again() -> Any:
            if path is not None and mode not in ("overwrite", "append"):
                remove_empty(self._spark, path)  # or it would exist already
            return self._by_spark(name, args)

        possible = self._rescue and leaves_nothing(self._spark, self._format(name, args), mode)
        return attempt("write", lambda: getattr(self._writer, name)(*args), again if possible else None)

    def _by_spark(self, name: str, args: tuple[Any, ...]) -> Any:
        writer = self._original._jdf.write()
        for setting, values in self._set:
            writer = getattr(writer, setting)(*values)
        return getattr(writer, name)(*args)

    def _mode(self) -> str | None:
        modes = [str(a[0]).lower() for n, a in self._set if n == "mode"]
        return modes[-1] if modes else None

    def _path(self, name: str, args: tuple[Any, ...]) -> str | None:
        if name not in _TO_A_PATH:
            return None
        given = [str(a[1]) for n, a in self._set if n == "option" and str(a[0]).lower() == "path"]
        return str(args[0]) if args else given[-1] if given else None

    def _format(self, name: str, args: tuple[Any, ...]) -> str | None:
        """What is written; None where that is not for this to know."""
        if name == "insertInto":
            return format_of_table(self._spark, str(args[0]))
        if name in ("save", "saveAsTable"):
            formats = [str(a[0]) for n, a in self._set if n == "format"]
            return formats[-1] if formats else self._spark.conf.get("spark.sql.sources.default")
        return name

    def _reads(self, path: str) -> bool:
        """Whether one of the files is, or is below, the path."""
        local = local_path(path)
        if local is None:
            return any(file == path or file.startswith(f"{path.rstrip('/')}/") for file in self._files)
        folder = os.path.join(os.path.realpath(local), "")
        return any(os.path.join(os.path.realpath(f), "").startswith(folder) for f in self._files)
