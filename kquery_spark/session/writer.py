"""Writing what the engine computes: Spark must see what is read, and what is read must not be gone before it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.readwriter import DataFrameWriter

from kquery_spark.sources.files import local_path

_TO_A_PATH = frozenset({"save", "parquet", "orc", "csv", "json", "text", "xml"})
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
    """

    def __init__(self, frame: DataFrame, original: DataFrame, files: Sequence[str]) -> None:
        super().__init__(frame)
        self._jwrite: Any = _JvmWriter(self._jwrite, lambda: original._jdf.write(), files)


class _JvmWriter:
    """Spark's writer, as PySpark calls it; what is set is remembered for the other one."""

    def __init__(self, writer: Any, sparks: Callable[[], Any], files: Sequence[str]) -> None:
        self._writer = writer
        self._sparks = sparks
        self._files = files
        self._set: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if name in _SETTINGS:
                self._writer = getattr(self._writer, name)(*args)
                self._set.append((name, args))
                return self
            return getattr(self._chosen(name, args), name)(*args)

        return call

    def _chosen(self, name: str, args: tuple[Any, ...]) -> Any:
        modes = [str(a[0]).lower() for n, a in self._set if n == "mode"]
        given = [str(a[1]) for n, a in self._set if n == "option" and str(a[0]).lower() == "path"]
        path = str(args[0]) if args else given[-1] if given else None
        if name not in _TO_A_PATH or modes[-1:] != ["overwrite"] or path is None or not self._reads(path):
            return self._writer
        writer = self._sparks()
        for setting, values in self._set:
            writer = getattr(writer, setting)(*values)
        return writer

    def _reads(self, path: str) -> bool:
        """Whether one of the files is, or is below, the path."""
        local = local_path(path)
        if local is None:
            return any(file == path or file.startswith(f"{path.rstrip('/')}/") for file in self._files)
        folder = os.path.join(os.path.realpath(local), "")
        return any(os.path.join(os.path.realpath(f), "").startswith(folder) for f in self._files)
