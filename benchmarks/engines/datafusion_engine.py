"""DataFusion as an outside reference."""

from __future__ import annotations

import time
from collections.abc import Sequence

from datafusion import SessionConfig, SessionContext

from benchmarks import taxi
from benchmarks.engines.base import Run, Settings, Skipped
from benchmarks.suites.base import Query, Table


class Engine:
    """One session context with the files registered."""

    name = "datafusion"

    def __init__(self, settings: Settings) -> None:
        self._context = SessionContext(SessionConfig().with_target_partitions(settings.cores))

    def load(self, tables: Sequence[Table]) -> None:
        """Register the Parquet and CSV files."""
        for table in tables:
            if table.format == "parquet":
                self._context.register_parquet(table.name, str(table.path))
            elif table.ddl == taxi.DDL:
                self._context.register_csv(table.name, str(table.path), schema=taxi.SCHEMA)
            else:
                raise Skipped(f"no types for {table.name} as DataFusion wants them")

    def run(self, query: Query) -> Run:
        """Run and fetch as Arrow."""
        start = time.perf_counter()
        table = self._context.sql(query.other_sql or query.sql).to_arrow_table()
        return Run(table, time.perf_counter() - start)

    def close(self) -> None:
        """Nothing is held."""
