"""What Spark's writes to files leave behind when they fail."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kquery_spark.sources.formats import FORMATS
from kquery_spark.spark_bridge.hadoop_files import HadoopFiles

# Formats that the engine does not read, and that Spark writes in the same way.
_OTHERS = ("text", "xml", "avro")
FILE_FORMATS = frozenset({entry.name for entry in FORMATS if entry.job_commit} | set(_OTHERS))
"""Formats that Spark writes as files of tasks, which come to their place together."""

_PROTOCOL = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"


def leaves_nothing(spark: SparkSession, written: str | None, mode: str | None) -> bool:
    """Whether a write that failed is, for the same write once more, as if it had not been.

    written: the format. mode: of the writer, in lower case; None: the default, errorifexists.
    """
    if written is None or written.lower() not in FILE_FORMATS:
        return False
    if mode == "overwrite":
        return True
    # Hadoop's second algorithm gives the files of a task their place when the task, not when the job, is done
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    algorithm = settings.get("mapreduce.fileoutputcommitter.algorithm.version")
    return algorithm == "1" and spark.conf.get("spark.sql.sources.commitProtocolClass") == _PROTOCOL


def format_of_table(spark: SparkSession, name: str) -> str | None:
    """The format of a table of Spark's own catalog; None for other tables."""
    state = spark._jsparkSession.sessionState()
    try:
        provider = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(name)).provider()
    except (PySparkException, Py4JJavaError):
        return None
    return str(provider.get()) if provider.isDefined() else None


def remove_empty(spark: SparkSession, path: str) -> None:
    """Remove the folder that a failed write may have made; Py4JJavaError where there is something in it."""
    files = HadoopFiles(spark, path)
    files.system.delete(files.path, False)
