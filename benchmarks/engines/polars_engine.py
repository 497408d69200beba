"""Polars as an outside reference."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from benchmarks import taxi
from benchmarks.engines.base import Run, Settings, Skipped
from benchmarks.suites.base import Query, Table


class Engine:
    """A SQL context over lazy scans, run by the streaming engine."""

    name = "polars"

    def __init__(self, settings: Settings) -> None:
        # read once, when polars is imported
        os.environ["POLARS_MAX_THREADS"] = str(settings.cores)
        import polars

        self._polars: Any = polars
        self._context: Any = polars.SQLContext()

    def load(self, tables: Sequence[Table]) -> None:
        """Lazy scans of the Parquet and CSV files."""
        for table in tables:
            files = [str(file) for file in table.files()]
            if table.format == "parquet":
                frame = self._polars.scan_parquet(files)
            elif table.ddl == taxi.DDL:
                schema = self._polars.from_arrow(taxi.SCHEMA.empty_table()).schema
                frame = self._polars.scan_csv(files, schema=schema, try_parse_dates=True)
            else:
                raise Skipped(f"no types for {table.name} as Polars wants them")
            self._context.register(table.name, frame)

    def run(self, query: Query) -> Run:
        """Run and fetch as Arrow."""
        start = time.perf_counter()
        frame = self._context.execute(query.other_sql or query.sql)
        table = frame.collect(engine="streaming").to_arrow()
        return Run(table, time.perf_counter() - start)

    def close(self) -> None:
        """Nothing is held."""
