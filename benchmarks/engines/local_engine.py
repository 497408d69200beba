"""Our engine without Spark: ``kq.ExecutionContext()`` in a process without a JVM."""

from __future__ import annotations

import time
from collections.abc import Sequence

import kquery_spark as kq
from benchmarks.engines.base import Run, Settings
from benchmarks.suites.base import Query, Table
from kquery_spark.config.engine import EngineConfig


class Engine:
    """A context for each set of settings; every run plans its query from the text."""

    name = "local"

    def __init__(self, settings: Settings) -> None:
        self._config = EngineConfig(parallelism=settings.cores).with_settings(settings.conf)
        self._tables: Sequence[Table] = ()
        self._contexts: dict[tuple[tuple[str, str], ...], kq.ExecutionContext] = {}

    def load(self, tables: Sequence[Table]) -> None:
        """Remember the tables; contexts register them."""
        self._tables = tables
        self._contexts.clear()
        self._context({})

    def _context(self, settings: dict[str, str]) -> kq.ExecutionContext:
        key = tuple(sorted(settings.items()))
        if key not in self._contexts:
            context = kq.ExecutionContext(config=self._config.with_settings(settings))
            for table in self._tables:
                if table.format == "csv":
                    context.register_csv(table.name, table.path, schema=table.ddl)
                else:
                    context.register_parquet(table.name, table.path)
            self._contexts[key] = context
        return self._contexts[key]

    def run(self, query: Query) -> Run:
        """Run and fetch as Arrow."""
        context = self._context(query.settings)
        start = time.perf_counter()
        table = context.sql(query.sql).to_arrow()
        return Run(table, time.perf_counter() - start)

    def close(self) -> None:
        """Nothing is held."""
