"""Iceberg scans in Spark's plans: the scan itself says which data files it reads, and which rows of them are deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError

from kquery_spark.sources.iceberg.features import INCREMENTAL
from kquery_spark.sources.iceberg.tasks import Field, PlannedFile, read_schema, read_tasks
from kquery_spark.spark_bridge.jvm import Jvm

_ICEBERG = "org.apache.iceberg."
_SCAN = f"{_ICEBERG}spark.source.SparkBatchQueryScan"
_TASK = f"{_ICEBERG}FileScanTask"


@dataclass(frozen=True)
class IcebergScan:
    """A scan of a table's snapshot. fields: of the columns that it reads, by name; files: all that it has to read."""

    table: str
    fields: tuple[Field, ...]
    files: tuple[PlannedFile, ...]


def is_iceberg(scan: Any, jvm: Jvm) -> bool:
    """Whether a scan of the newer data source interface is one of Iceberg's of a snapshot's rows."""
    return jvm.class_name(scan) == _SCAN


def iceberg_scan(scan: Any, jvm: Jvm) -> IcebergScan:
    """What a scan plans; Unsupported where the engine cannot read that."""
    partitions = scan.toBatch().planInputPartitions()
    if not len(partitions):
        return IcebergScan("", (), ())
    tasks = jvm.new("java.util.ArrayList")
    for partition in partitions:
        if not partition.allTasksOfType(jvm.cls(_TASK)):
            raise INCREMENTAL.declined()
        tasks.addAll(partition.taskGroup().tasks())
    schema = jvm.call(f"{_ICEBERG}SchemaParser", "toJson", _projection(partitions[0]))
    to_json = jvm.static_function(f"{_ICEBERG}ScanTaskParser", "toJson", _TASK)
    texts = jvm.strings(jvm.mapped(jvm.list_of(tasks.toArray()), to_json))
    return IcebergScan(str(partitions[0].table().name()), read_schema(schema), tuple(read_tasks(texts)))


def _projection(partition: Any) -> Any:
    """The schema of the columns that a partition reads; Iceberg before 1.12 calls it otherwise."""
    try:
        return partition.projection()
    except Py4JError:  # there is no such method
        return partition.expectedSchema()
