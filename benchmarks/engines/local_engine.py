"""Our engine without Spark: ``kq.ExecutionContext()`` in this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import kquery_spark as kq
from benchmarks.engines.base import Run, Settings, Skipped
from benchmarks.suites.base import Query, Table


class Engine:
    """One context; every run plans its query from the text."""

    name = "local"

    def __init__(self, settings: Settings) -> None:
        make: Any = getattr(kq, "ExecutionContext", None)
        if make is None:
            raise Skipped("this version has no ExecutionContext")
        self._context: Any = make()

    def load(self, tables: Sequence[Table]) -> None:
        """Register the files."""
        for table in tables:
            getattr(self._context, f"register_{table.format}")(table.name, str(table.path))

    def run(self, query: Query) -> Run:
        """Run and fetch as Arrow."""
        if query.settings:
            raise Skipped("settings of a query are Spark's")
        start = time.perf_counter()
        table = self._context.sql(query.sql).to_arrow()
        return Run(table, time.perf_counter() - start)

    def close(self) -> None:
        """Nothing is held."""
