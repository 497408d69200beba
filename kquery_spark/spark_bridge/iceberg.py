"""Iceberg scans in Spark's plans: the scan itself says which data files it reads, and which rows of them are deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kquery_spark.sources.iceberg.tasks import Field, PlannedFile, read_schema, read_tasks
from kquery_spark.spark_bridge.jvm import Jvm

_ICEBERG = "org.apache.iceberg."
_SCAN = f"{_ICEBERG}spark.source.SparkBatchQueryScan"
_PARTITION = f"{_ICEBERG}spark.source.SparkInputPartition"
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
    partitions = list(scan.toBatch().planInputPartitions())
    if not partitions:
        return IcebergScan("", (), ())
    schema = jvm.call(f"{_ICEBERG}SchemaParser", "toJson", partitions[0].projection())
    texts = []
    for partition in partitions:
        for task in partition.taskGroup().tasks():
            texts.append(jvm.call(f"{_ICEBERG}ScanTaskParser", "toJson", task))
    return IcebergScan(str(partitions[0].table().name()), read_schema(schema), tuple(read_tasks(texts)))
