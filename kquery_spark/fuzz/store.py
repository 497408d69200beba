"""Stores tables on disk in their formats, as views of a Spark session and as tables of contexts without Spark."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kquery_spark.config.engine import EngineConfig
from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.fuzz.tables import FuzzTable
from kquery_spark.sources.orc.source import orc_source
from kquery_spark.spark_bridge.session.bridge import get_bridge
from kquery_spark.types import names as t

# These turn off two kinds of row-group pruning that change Spark's answers (docs/trust.md, "Known exceptions"). By its
# dictionary, Spark skips a row group with -0.0 when a filter requires 0.0, although it considers the two equal. By its
# statistics, Spark skips a row group with NaN if the statistics ignore NaN, as those of other writers do.
READER_OPTIONS = {"parquet.filter.dictionary.enabled": "false", "parquet.filter.stats.enabled": "false"}


class TableStore:
    """A directory of tables. A table replaces an earlier one of the same name. Closing the store removes all tables."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._directory = Path(tempfile.mkdtemp(prefix="kquery-fuzz-"))
        self._registered: dict[str, FuzzTable] = {}
        self._directories: dict[str, Path] = {}
        self._written = 0
        self._jvm_zone = get_bridge(spark).jvm.time_zone()

    def __enter__(self) -> TableStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._registered:
            self._spark.catalog.dropTempView(name)
        shutil.rmtree(self._directory, ignore_errors=True)

    def register(self, tables: Sequence[FuzzTable]) -> None:
        """Write the tables that are not stored yet, and create a view of the session for each."""
        for table in tables:
            if self._registered.get(table.name) is table:
                continue
            # Use a new directory each time, because workers cache data by the paths of files.
            self._written += 1
            directory = self._directory / f"{self._written}-{table.name}"
            write_table(self._spark, table, directory)
            options = READER_OPTIONS if table.format == "parquet" else {}
            reader = self._spark.read.options(**options).schema(ddl(table.data.schema))
            reader.format(table.format).load(str(directory)).createOrReplaceTempView(table.name)
            old = self._directories.get(table.name)
            if old is not None:
                shutil.rmtree(old, ignore_errors=True)
            self._registered[table.name] = table
            self._directories[table.name] = directory

    def context(
        self, tables: Sequence[FuzzTable], config: EngineConfig, ansi: bool = True, time_zone: str = "UTC"
    ) -> ExecutionContext:
        """Return a context without Spark over these tables."""
        context = ExecutionContext(config=config, ansi=ansi, time_zone=time_zone)
        for table in tables:
            directory = self._directories[table.name]
            if table.format == "orc":  # times in ORC files use the JVM's time zone, not the session's
                context.register_source(table.name, orc_source([str(directory)], time_zone, self._jvm_zone))
            else:
                register_locally(context, table, directory)
        return context


def write_table(spark: SparkSession, table: FuzzTable, directory: Path) -> None:
    """Write a table with one file per piece: Parquet by Arrow, other formats by Spark."""
    if table.format != "parquet":
        # Pass the schema explicitly. Otherwise times without a time zone would get one.
        frame = spark.createDataFrame(table.data, ddl(table.data.schema)).repartition(table.pieces)
        frame.write.format(table.format).save(str(directory))
        return
    directory.mkdir(parents=True)
    rows = table.data.num_rows
    size = max(1, -(-rows // table.pieces))
    for piece, start in enumerate(range(0, max(rows, 1), size)):
        pq.write_table(table.data.slice(start, size), directory / f"part-{piece}.parquet")


def ddl(schema: pa.Schema) -> str:
    """Return the column declarations in Spark SQL."""
    return ", ".join(f"{field.name} {t.spark_name(field.type)}" for field in schema)


def register_locally(context: ExecutionContext, table: FuzzTable, directory: Path) -> None:
    """Register a table of any format but ORC in a context, with an explicit schema if its files have none."""
    if table.format == "csv":
        context.register_csv(table.name, directory, ddl(table.data.schema), header=False)
    elif table.format == "json":
        context.register_json(table.name, directory, ddl(table.data.schema))
    else:
        context.register_parquet(table.name, directory)
