"""PySpark writers that pass each write, with its settings, to a function instead of starting it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2

_SETTINGS = frozenset(
    {"mode", "format", "option", "options", "partitionBy", "bucketBy", "sortBy", "clusterBy"}
    | {"using", "tableProperty", "partitionedBy"}  # methods of the writer of ``writeTo``
)
_OVERWRITE = frozenset({"replace", "createOrReplace", "overwrite", "overwritePartitions"})


@dataclass(frozen=True)
class Write:
    """A write that is about to start: the method of Spark's writer, its arguments, and the settings before it.

    table: the argument of ``writeTo``; None for a writer of ``write``.
    """

    method: str
    arguments: tuple[Any, ...]
    settings: tuple[tuple[str, tuple[Any, ...]], ...]
    table: str | None = None

    def run_for(self, frame: DataFrame) -> Any:
        """Write the rows of a DataFrame with these settings."""
        writer: Any = frame._jdf.write() if self.table is None else frame._jdf.writeTo(self.table)
        for name, values in self.settings:
            writer = getattr(writer, name)(*values)
        return getattr(writer, self.method)(*self.arguments)

    @property
    def mode(self) -> str | None:
        """The mode in lower case; None for Spark's default, errorifexists."""
        if self.table is not None:
            return "overwrite" if self.method in _OVERWRITE else "append"
        modes = [str(values[0]).lower() for name, values in self.settings if name == "mode"]
        return modes[-1] if modes else None

    @property
    def format(self) -> str | None:
        """The format, if one was set."""
        formats = [str(values[0]) for name, values in self.settings if name in ("format", "using")]
        return formats[-1] if formats else None

    @property
    def path_option(self) -> str | None:
        """The option ``path``, if it was set."""
        given = [v for name, v in self.settings if name == "option" and str(v[0]).lower() == "path"]
        return str(given[-1][1]) if given else None


class InterceptedWriter(DataFrameWriter):
    """A ``DataFrameWriter`` that calls ``begin`` for each write."""

    def __init__(self, frame: DataFrame, begin: Callable[[Write], Any]) -> None:
        super().__init__(frame)
        self._jwrite: Any = _JvmWriter(self._jwrite, begin)


class InterceptedTableWriter(DataFrameWriterV2):
    """A ``DataFrameWriterV2`` that calls ``begin`` for each write."""

    def __init__(self, frame: DataFrame, table: str, begin: Callable[[Write], Any]) -> None:
        super().__init__(frame, table)
        writer: Any = self
        writer._jwriter = _JvmWriter(writer._jwriter, begin, table)


class _JvmWriter:
    """Stands in for Spark's JVM writer: passes settings to it, which checks them, records them, and intercepts writes."""

    def __init__(self, writer: Any, begin: Callable[[Write], Any], table: str | None = None) -> None:
        self._writer = writer
        self._begin = begin
        self._table = table
        self._set: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if name in _SETTINGS:
                self._writer = getattr(self._writer, name)(*args)
                self._set.append((name, args))
                return self
            return self._begin(Write(name, args, tuple(self._set), self._table))

        return call
