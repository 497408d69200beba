"""Targets of Spark's writes, and whether a failed write can be repeated because it leaves nothing behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from kquery_spark.sources.formats import FORMATS
from kquery_spark.spark_bridge.hadoop.files import HadoopFiles
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS

# Formats that the engine does not read, but that Spark writes in the same way.
_OTHERS = ("text", "xml", "avro")
FILE_FORMATS = frozenset({entry.name for entry in FORMATS if entry.job_commit} | set(_OTHERS))
"""Formats whose tasks write files that the job commit moves to their final location."""

TRANSACTIONAL_FORMATS = frozenset({"delta", "iceberg"})
"""Table formats whose writes become visible by a single commit after the last task."""

_CATALOG = "spark_catalog"
_ICEBERG_CATALOGS = "org.apache.iceberg.spark."
_PROTOCOL = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"


@dataclass(frozen=True)
class WriteTarget:
    """The target of a write. format: None if unknown. mode: "overwrite" or "append".

    location: the directory that an overwrite empties before its tasks run; None if its tasks run first.
    """

    format: str | None
    mode: str
    location: str | None = None

    def cleans_up_after_failure(self, spark: SparkSession) -> bool:
        """Return whether the same write may run again after a failure, like the function with this name."""
        return cleans_up_after_failure(spark, self.format, self.mode)


def cleans_up_after_failure(spark: SparkSession, written: str | None, mode: str | None) -> bool:
    """Return whether the same write may run again after a failure, because nothing of the first attempt would be visible.

    written: the format. mode: the writer's mode in lower case; None for the default, errorifexists.
    """
    if written is None:
        return False
    if written.lower() in TRANSACTIONAL_FORMATS:
        return True
    if written.lower() not in FILE_FORMATS:
        return False
    if mode == "overwrite":
        return True
    # version 2 of Hadoop's commit algorithm publishes the files of a task when the task commits, not when the job does
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    algorithm = settings.get("mapreduce.fileoutputcommitter.algorithm.version")
    return algorithm == "1" and spark.conf.get("spark.sql.sources.commitProtocolClass") == _PROTOCOL


def named_target(
    spark: SparkSession, names: Sequence[str], mode: str, provider: str | None = None
) -> WriteTarget | None:
    """The target of a write to a table; None for a temporary view, and for tables of other systems' catalogs.

    names: the parts of the table's name. provider: the format of a table that the write creates. Raises Spark's error if
    the table does not exist.
    """
    state = spark._jsparkSession.sessionState()
    manager = state.catalogManager()
    if len(names) > 1 and manager.isCatalogRegistered(names[0]):
        catalog, names = names[0], names[1:]
    else:
        catalog = manager.currentCatalog().name()
    if catalog != _CATALOG:
        implementation = str(manager.catalog(catalog).getClass().getName())
        return WriteTarget("iceberg", mode) if implementation.startswith(_ICEBERG_CATALOGS) else None
    if provider is not None:
        return WriteTarget(provider, mode)
    quoted = ".".join(f"`{name.replace('`', '``')}`" for name in names)
    identifier = state.sqlParser().parseTableIdentifier(quoted)
    if state.catalog().isTempView(identifier):
        return None
    table = state.catalog().getTableMetadata(identifier)
    if not table.provider().isDefined():
        return None
    written, location = str(table.provider().get()), None
    if mode == "overwrite" and written.lower() not in TRANSACTIONAL_FORMATS:
        location = table.storage().locationUri()
        location = str(location.get().toString()) if location.isDefined() else None
    return WriteTarget(written, mode, location)


def table_target(
    spark: SparkSession, name: str, mode: str, provider: str | None = None
) -> WriteTarget | None:
    """Like ``named_target``, for a name in SQL syntax; also None if the table does not exist."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        parts = parser.parseMultipartIdentifier(name)
        return named_target(spark, [str(parts.apply(i)) for i in range(parts.size())], mode, provider)
    except SPARK_ERRORS:
        return None


def remove_empty(spark: SparkSession, path: str) -> None:
    """Remove the empty directory that a failed write may have created; raises Py4JJavaError if it contains files."""
    files = HadoopFiles(spark, path)
    files.system.delete(files.path, False)
