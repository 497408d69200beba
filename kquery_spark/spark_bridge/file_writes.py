"""What Spark's writes leave behind when they fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kquery_spark.sources.formats import FORMATS
from kquery_spark.spark_bridge.hadoop_files import HadoopFiles

# Formats that the engine does not read, and that Spark writes in the same way.
_OTHERS = ("text", "xml", "avro")
FILE_FORMATS = frozenset({entry.name for entry in FORMATS if entry.job_commit} | set(_OTHERS))
"""Formats that Spark writes as files of tasks, which come to their place together."""

TRANSACTIONAL_FORMATS = frozenset({"delta", "iceberg"})
"""Formats of tables whose writes become visible by one commit, after the last task."""

_CATALOG = "spark_catalog"
_ICEBERG_CATALOGS = "org.apache.iceberg.spark."
_PROTOCOL = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"


@dataclass(frozen=True)
class WriteTarget:
    """What is written to. format: None if unknown. mode: "overwrite" or "append".

    location: the folder that an overwrite empties before its tasks run; None where they run first.
    """

    format: str | None
    mode: str
    location: str | None = None

    def leaves_nothing(self, spark: SparkSession) -> bool:
        """Whether a write that failed is, for the same write once more, as if it had not been."""
        return leaves_nothing(spark, self.format, self.mode)


def leaves_nothing(spark: SparkSession, written: str | None, mode: str | None) -> bool:
    """Whether a write that failed is, for the same write once more, as if it had not been.

    written: the format. mode: of the writer, in lower case; None: the default, errorifexists.
    """
    if written is None:
        return False
    if written.lower() in TRANSACTIONAL_FORMATS:
        return True
    if written.lower() not in FILE_FORMATS:
        return False
    if mode == "overwrite":
        return True
    # Hadoop's second algorithm gives the files of a task their place when the task, not when the job, is done
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    algorithm = settings.get("mapreduce.fileoutputcommitter.algorithm.version")
    return algorithm == "1" and spark.conf.get("spark.sql.sources.commitProtocolClass") == _PROTOCOL


def named_target(
    spark: SparkSession, names: Sequence[str], mode: str, provider: str | None = None
) -> WriteTarget | None:
    """What a write to a table goes to; None for a temporary view and for a table that is not there.

    names: the parts of the table's name. provider: the format of a table that is to be made.
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
    """``named_target`` of a name as SQL writes it; None for a table that is not there, too."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        parts = parser.parseMultipartIdentifier(name)
        return named_target(spark, [str(parts.apply(i)) for i in range(parts.size())], mode, provider)
    except (PySparkException, Py4JJavaError):
        return None


def remove_empty(spark: SparkSession, path: str) -> None:
    """Remove the folder that a failed write may have made; Py4JJavaError where there is something in it."""
    files = HadoopFiles(spark, path)
    files.system.delete(files.path, False)
