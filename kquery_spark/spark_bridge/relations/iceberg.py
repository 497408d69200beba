"""Reads Iceberg scans in Spark's plans: the data files that the scan itself plans, and their delete files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kquery_spark.sources.iceberg.features import INCREMENTAL
from kquery_spark.sources.iceberg.name_mapping import PROPERTY
from kquery_spark.sources.iceberg.tasks import Field, PlannedFile, read_schema, read_tasks
from kquery_spark.spark_bridge.jvm.calls import Jvm

_ICEBERG = "org.apache.iceberg."
_SPARK = f"{_ICEBERG}spark.source."
_SCAN = f"{_SPARK}SparkBatchQueryScan"
_ANY_SCAN = f"{_SPARK}SparkScan"
_TABLE = f"{_ICEBERG}Table"
_TASK = f"{_ICEBERG}FileScanTask"
_TO_ARRAY = ("java.util.Collection", "toArray")
_TO_SEQUENCE = ("scala.Predef", "wrapRefArray", "[Ljava.lang.Object;")
_NAME_MAPPING = ("java.util.Map", "get", "java.lang.Object", PROPERTY)
_TO_JSON = (f"{_ICEBERG}SchemaParser", "toJson", f"{_ICEBERG}Schema")


@dataclass(frozen=True)
class IcebergScan:
    """A scan of a table's snapshot.

    fields: the fields of the columns that it reads, by name. files: all data files. name_mapping: returns the table's name
    mapping in JSON, which files without field ids need.
    """

    table: str
    fields: tuple[Field, ...]
    files: tuple[PlannedFile, ...]
    name_mapping: Callable[[], str | None] = field(default=lambda: None, compare=False, repr=False)


def is_iceberg(scan: Any, jvm: Jvm) -> bool:
    """Return whether a scan of DataSource V2 is an Iceberg scan of the rows of a snapshot."""
    return jvm.class_name(scan) == _SCAN


def iceberg_scan(scan: Any, jvm: Jvm) -> IcebergScan:
    """Return the files that a scan plans; raises Unsupported if the engine cannot read them.

    Spark's input partitions contain the same tasks. But to create them, Iceberg broadcasts the table to all executors, which
    takes longer than everything else here.
    """
    groups = jvm.private_function(
        f"{_SPARK}SparkPartitioningAwareScan", "taskGroups", _TO_ARRAY, _TO_SEQUENCE
    )
    tasks_of = jvm.steps("tasks of a group", (f"{_ICEBERG}ScanTaskGroup", "tasks"), _TO_ARRAY, _TO_SEQUENCE)
    tasks = jvm.flat_map_sequence(groups.apply(scan), tasks_of)
    if not tasks.forall(jvm.is_instance(_TASK)):
        raise INCREMENTAL.declined()
    to_json = jvm.static_function(f"{_ICEBERG}ScanTaskParser", "toJson", _TASK)
    strings = jvm.map_strings(tasks, to_json)
    if not strings:
        return IcebergScan("", (), ())
    table = jvm.private_function(_ANY_SCAN, "table", (_TABLE, "name")).apply(scan)
    fields = read_schema(_projection(jvm).apply(scan))
    return IcebergScan(table, fields, tuple(read_tasks(strings)), partial(_name_mapping, scan, jvm))


def _name_mapping(scan: Any, jvm: Jvm) -> str | None:
    properties = jvm.private_function(_ANY_SCAN, "table", (_TABLE, "properties"), _NAME_MAPPING)
    mapping: str | None = properties.apply(scan)
    return mapping


def _projection(jvm: Jvm) -> Any:
    """``scan => SchemaParser.toJson(scan.projection)``; in Iceberg before 1.12 the method has another name."""
    name = "projection" if jvm.has_private_method(_ANY_SCAN, "projection") else "expectedSchema"
    return jvm.private_function(_ANY_SCAN, name, _TO_JSON)
