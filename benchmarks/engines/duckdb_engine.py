"""DuckDB as an outside reference."""

from __future__ import annotations

import time
from collections.abc import Sequence

import duckdb

from benchmarks.engines.base import Run, Settings
from benchmarks.suites.base import Query, Table


class Engine:
    """One in-memory connection with views over the files."""

    name = "duckdb"

    def __init__(self, settings: Settings) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads TO {settings.cores}")
        self._connection.execute("SET TimeZone = 'UTC'")

    def load(self, tables: Sequence[Table]) -> None:
        """Views over the Parquet and CSV files."""
        for table in tables:
            files = "[" + ", ".join(f"'{file}'" for file in table.files()) + "]"
            source = f"read_parquet({files})"
            if table.format == "csv":
                pairs = (column.split(" ", 1) for column in str(table.ddl).split(", "))
                columns = ", ".join(f"'{name}': '{_TYPES.get(kind, kind)}'" for name, kind in pairs)
                source = f"read_csv({files}, header = true, columns = {{{columns}}})"
            self._connection.execute(f"CREATE OR REPLACE VIEW {table.name} AS SELECT * FROM {source}")

    def run(self, query: Query) -> Run:
        """Run and fetch as Arrow."""
        start = time.perf_counter()
        table = self._connection.execute(query.other_sql or query.sql).to_arrow_table()
        return Run(table, time.perf_counter() - start)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


_TYPES = {"TIMESTAMP_NTZ": "TIMESTAMP", "INT": "INTEGER", "STRING": "VARCHAR"}
