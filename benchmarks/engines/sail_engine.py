"""Sail, a Spark-compatible engine, reached over Spark Connect as its users reach it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.engines.base import Run, Settings
from benchmarks.suites.base import Query, Table


class Engine:
    """A Sail server in this process and a Spark Connect session to it."""

    name = "sail"

    def __init__(self, settings: Settings) -> None:
        os.environ["SAIL_EXECUTION__DEFAULT_PARALLELISM"] = str(settings.cores)
        from pysail.spark import SparkConnectServer
        from pyspark.sql.connect.session import SparkSession

        self._server: Any = SparkConnectServer("127.0.0.1", 0)
        self._server.start(background=True)
        _, port = self._server.listening_address
        self._spark: Any = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()

    def load(self, tables: Sequence[Table]) -> None:
        """Views over the files, declared as for Spark."""
        for table in tables:
            reader = self._spark.read.format(table.format)
            if table.ddl is not None:
                reader = reader.schema(table.ddl).option("header", True)
            reader.load(str(table.path)).createOrReplaceTempView(table.name)

    def run(self, query: Query) -> Run:
        """Run and fetch as Arrow."""
        start = time.perf_counter()
        table = self._spark.sql(query.sql).toArrow()
        return Run(table, time.perf_counter() - start)

    def close(self) -> None:
        """Stop the session, then the server."""
        self._spark.stop()
        self._server.stop()
