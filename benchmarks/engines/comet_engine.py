"""Runs queries on Apache DataFusion Comet, a plugin for native operators, in its own Spark session."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyspark

from benchmarks.compare import rows_of, session
from benchmarks.engines.base import Run, Settings, Skipped
from benchmarks.engines.spark import register, session_settings
from benchmarks.suites.base import Query, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Spark release -> Maven coordinates of the newest Comet for it, which Spark downloads from Maven Central.
PACKAGES = {
    "4.0": "org.apache.datafusion:comet-spark-spark4.0_2.13:0.12.0",
    "4.1": "org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0",
}


class Engine:
    """Comet with the settings of its installation guide. Its off-heap memory is as large as the JVM's heap."""

    name = "comet"

    def __init__(self, settings: Settings) -> None:
        release = pyspark.__version__.rpartition(".")[0]
        if release not in PACKAGES:
            raise Skipped(f"Comet has no package for Spark {release}, only for {', '.join(PACKAGES)}")
        conf = {
            "spark.jars.packages": PACKAGES[release],
            "spark.plugins": "org.apache.spark.CometPlugin",
            "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
            "spark.memory.offHeap.enabled": "true",
            "spark.memory.offHeap.size": settings.driver_memory,
            **settings.conf,
        }
        self._spark: SparkSession = session(
            "comet", settings.cores, settings.shuffle_partitions, settings.driver_memory, conf
        )

    def load(self, tables: Sequence[Table]) -> None:
        """Register the tables as temporary views."""
        register(self._spark, tables)

    def run(self, query: Query) -> Run:
        """Plan and run the query, and fetch its rows as Arrow."""
        with session_settings(self._spark, query.settings):
            start = time.perf_counter()
            table = rows_of(self._spark.sql(query.sql))
            return Run(table, time.perf_counter() - start)

    def close(self) -> None:
        """Stop the session."""
        self._spark.stop()
