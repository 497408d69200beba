"""Describes the leaf relations of a plan: files with their partition values, rows in the plan, ranges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.bucketing import BucketSpec
from kquery_spark.sources.delta.column_mapping import Column
from kquery_spark.sources.file_columns import with_file_columns
from kquery_spark.sources.file_features import OTHER_DEFAULTS
from kquery_spark.sources.file_format import Format
from kquery_spark.sources.file_relation import FileRelation, TableColumns
from kquery_spark.sources.formats import FORMATS, format_named
from kquery_spark.spark_bridge.hadoop.paths import HadoopPaths
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.internal_values import internal_element
from kquery_spark.spark_bridge.plan.literal_values import array_of_strings, array_of_values
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.relations import delta
from kquery_spark.spark_bridge.relations.cached_rows import COMPUTED_CACHE, cached_scan
from kquery_spark.spark_bridge.relations.column_defaults import existence_defaults
from kquery_spark.spark_bridge.relations.delta_snapshots import DeltaSnapshots
from kquery_spark.spark_bridge.relations.file_listing import (
    files_of,
    in_reading_order,
    listed_files,
    schema_columns,
)
from kquery_spark.spark_bridge.relations.iceberg import IcebergScan, iceberg_scan, is_iceberg
from kquery_spark.spark_bridge.session.hybrid_zones import HybridZones
from kquery_spark.spark_bridge.session.zone_rules import follow_zone
from kquery_spark.types.names import spark_name as name_of
from kquery_spark.types.spark_json import arrow_schema, has_coarse_times

_SOURCES = "org.apache.spark.sql.execution.datasources."
_FILES = f"{_SOURCES}HadoopFsRelation"
_FORMATS = {f"{_SOURCES}{entry.catalyst_class}": entry for entry in FORMATS} | {
    delta.FORMAT_CLASS: delta.FILE_FORMAT
}
V2_SCAN = "DataSourceV2ScanRelation"
CACHE = "InMemoryRelation"
_NAME = "java.lang.Class getName"
_COARSE_TIMES = "files with times below microseconds are not supported, because Spark may cut off decimals"
# The maximum number of rows with nested values, because each part of a value takes a py4j call.
_MAX_NESTED_ROWS = 200


@dataclass(frozen=True, eq=False)
class LocalRows:
    """A LocalRelation, whose rows are part of the plan."""

    count: int
    rows: Any
    jvm: Jvm = field(repr=False)

    def column(self, position: int, spark: Any, dtype: pa.DataType) -> pa.Array:
        """One column of the rows. spark: its JSON type. Raises Unsupported for many rows of nested values."""
        if not self.count or pa.types.is_null(dtype):
            return pa.nulls(self.count, dtype)
        rows = self.rows.toIndexedSeq()
        if pa.types.is_nested(dtype) or pa.types.is_binary(dtype):
            if self.count > _MAX_NESTED_ROWS:
                raise Unsupported(f"{name_of(dtype)} values in large inline tables are not supported")
            values = [internal_element(rows.apply(i), position, spark) for i in range(self.count)]
            return array_of_values(values, dtype)
        return array_of_strings(self.jvm.column_strings(rows, position, spark), dtype)


@dataclass(frozen=True)
class RangeRelation:
    """``spark.range``: bigints from ``start`` to before ``end``."""

    start: int
    end: int
    step: int


@dataclass(frozen=True)
class OneRow:
    """A relation of one row without columns."""


@dataclass(frozen=True)
class OtherRelation:
    """A leaf that only Spark can read. kind: the name of its class. reason: the fallback reason."""

    kind: str
    reason: str


@dataclass(frozen=True, eq=False)
class CachedFiles:
    """Rows in Spark's cache: the files from which they were read, with their state at that time, and the cached columns."""

    relation: FileRelation
    columns: tuple[str, ...]


Relation = FileRelation | CachedFiles | IcebergScan | LocalRows | RangeRelation | OneRow | OtherRelation


class RelationReader:
    """Describes the leaves of one plan; a table that the plan reads several times is described once.

    parallelism: the number of tasks that run at once. snapshots: the snapshots of Delta tables, pinned when the plan was
    made. workers_have_hdfs_client: returns True if Spark's Python workers have the HDFS client.
    """

    def __init__(
        self,
        facts: Facts,
        jvm: Jvm,
        time_zone: str,
        hadoop_configuration: Callable[[], Any],
        zones: HybridZones,
        snapshots: DeltaSnapshots | None = None,
        workers_have_hdfs_client: Callable[[], bool] = lambda: False,
        parallelism: int = 2,
    ) -> None:
        self.parallelism = parallelism
        self._snapshots = snapshots or DeltaSnapshots(jvm, time_zone)
        self._facts = facts
        self._paths = HadoopPaths(hadoop_configuration, jvm, workers_have_hdfs_client)
        self._jvm = jvm
        self._time_zone = time_zone
        # Described leaves by identity hash: pairs of the JVM object that provides the rows and its description. Two equal
        # relations (with equal roots) may have been listed at different times, so only the same object counts.
        self._known: defaultdict[int, list[tuple[Any, Relation]]] = defaultdict(list)
        # Variants of relations that were read: with a subset of their files, and with metadata columns of their files.
        self._with_files: dict[tuple[int, Hashable], FileRelation] = {}
        self._with_file_columns: list[tuple[FileRelation, FileRelation]] = []
        self.zones = zones

    def with_files(
        self, relation: FileRelation, key: Hashable, positions: Callable[[], Sequence[int]]
    ) -> FileRelation:
        """A relation with a subset of its files; always the same object. ``positions`` is called once per key."""
        known = id(relation), key  # relations that were read are kept
        if known not in self._with_files:
            files = tuple(relation.files[i] for i in positions())
            pruned = len(relation.files) - len(files)
            some = replace(relation, files=files, files_pruned=pruned) if pruned else relation
            self._with_files[known] = some
        return self._with_files[known]

    def with_file_columns(self, relation: FileRelation, whole_bytes: int) -> FileRelation:
        """A relation with metadata columns of its files; always the same object.

        whole_bytes: Spark reads a file of up to this size in one piece.
        """
        for known, extended in self._with_file_columns:
            if known is relation:
                return extended
        extended = with_file_columns(relation, self._time_zone, whole_bytes)
        self._with_file_columns.append((relation, extended))
        return extended

    def path(self, path: str) -> str:
        """Translate Hadoop's path of a file to the engine's; raises Unsupported if the engine cannot read it."""
        return self._paths.engine_path(path)

    def read(self, node: CatalystNode) -> Relation:
        """Describe the relation that a leaf of the plan reads."""
        if node.fields.get("isStreaming"):
            return OtherRelation(node.cls, "streams are not supported")
        if node.cls == "OneRowRelation":
            return OneRow()
        if node.cls == "Range":
            return RangeRelation(node["start"], node["end"], node["step"])
        if node.cls == "LocalRelation":
            rows = self._facts.jvm_object(node).data()
            return LocalRows(rows.length(), rows, self._jvm)
        if node.cls == "LogicalRelation":
            source, class_name, identity_hash = self._facts.relation(node)
            describe = partial(self._logical, class_name=class_name)
            return self._describe_once(source, describe, identity_hash)
        if node.cls == CACHE:
            return self._describe_once(self._facts.jvm_object(node).cacheBuilder(), self._cached)
        if node.cls == V2_SCAN:
            return self._describe_once(self._facts.jvm_object(node).scan(), self._scan)
        return OtherRelation(node.cls, f"{node.cls} is not supported")

    def tracks_rows(self, node: CatalystNode) -> bool:
        """Return whether the ``_metadata`` of a leaf with files has row ids (row tracking)."""
        source, name, _ = self._facts.relation(node)
        return _has_files(name) and delta.tracks_rows(source.fileFormat(), self._jvm)

    def _scan(self, scan: Any) -> Relation:
        if not is_iceberg(scan, self._jvm):
            return OtherRelation(V2_SCAN, "tables of the newer data source interface are not supported")
        try:
            return iceberg_scan(scan, self._jvm)
        except Unsupported as error:
            return OtherRelation(V2_SCAN, error.reason)

    def _cached(self, builder: Any) -> Relation:
        try:
            scan = cached_scan(builder, self._jvm)
            described = _describe_cached(scan.source, self._jvm, self._time_zone)
            if isinstance(described, OtherRelation):
                return described
            if described.from_log:
                raise COMPUTED_CACHE.declined()
            files = files_of(scan.directories, scan.source, described, self._jvm)
        except Unsupported as error:
            return OtherRelation(CACHE, error.reason)
        return CachedFiles(replace(described, files=in_reading_order(files, described)), scan.columns)

    def _logical(self, source: Any, class_name: str) -> Relation:
        return _logical_relation(source, class_name, self._jvm, self._time_zone, self._snapshots)

    def _describe_once(
        self, source: Any, describe: Callable[[Any], Relation], identity_hash: int | None = None
    ) -> Relation:
        """Describe a JVM object that provides rows, or return its earlier description. identity_hash: its hash, if known."""
        if identity_hash is None:
            identity_hash = self._jvm.call("java.lang.System", "identityHashCode", source)
        same_hash = self._known[identity_hash]
        for known, description in same_hash:
            if self._jvm.is_same(known, source):
                return description
        description = describe(source)
        same_hash.append((source, description))
        return description


def _has_files(kind: str) -> bool:
    """Return whether a class is HadoopFsRelation, or a subclass of a table format."""
    return kind == _FILES or kind.startswith(delta.RELATION_CLASSES)


def _logical_relation(
    source: Any, class_name: str, jvm: Jvm, time_zone: str, snapshots: DeltaSnapshots
) -> Relation:
    """Describe the relation that a LogicalRelation reads, given its class name."""
    if not _has_files(class_name):
        name = class_name.rsplit(".", 1)[-1]
        return OtherRelation(name, f"{name} is not supported")
    described = _describe_cached(source, jvm, time_zone)
    if isinstance(described, OtherRelation):
        return described
    try:
        files = listed_files(source, described, jvm, snapshots)
        if (option := described.options.get("timezone")) is not None:  # the zone of times in text files
            follow_zone(jvm, option)
    except (Unsupported, SourceError) as error:
        return OtherRelation(described.format, _reason(error))
    if not format_named(described.format).in_jvm_zone:
        return replace(described, files=files)
    follow_zone(jvm, jvm.time_zone())
    return replace(described, files=files, jvm_zone=jvm.time_zone())


def _reason(error: Unsupported | SourceError) -> str:
    return error.reason if isinstance(error, Unsupported) else f"files are not supported: {error}"


def _describe_cached(source: Any, jvm: Jvm, time_zone: str) -> FileRelation | OtherRelation:
    """Describe a relation without its files; cached, because equal relations have equal schemas and options."""
    return jvm.cached_value(source, time_zone, lambda: _describe(source, jvm, time_zone))


def _describe(source: Any, jvm: Jvm, time_zone: str) -> FileRelation | OtherRelation:
    format_class = jvm.getter(_FILES, "fileFormat", "java.lang.Object getClass", _NAME).apply(source)
    file_format = _FORMATS.get(format_class)
    if file_format is None:
        short = format_class.rsplit(".", 1)[-1]
        return OtherRelation(short, f"files of {short} are not supported")
    name = file_format.name
    try:
        from_log = format_class == delta.FORMAT_CLASS
        table_columns = schema_columns(source.dataSchema(), jvm)
        partitions = schema_columns(source.partitionSchema(), jvm)
        columns, stored_partitions = table_columns, partitions
        if from_log:
            columns = delta.stored_columns(table_columns, source.fileFormat(), jvm)
            stored_partitions = delta.stored_columns(partitions, source.fileFormat(), jvm)
        data_schema, unread = _schema_and_unread(columns, time_zone, file_format.reads_variants)
        if unread and not file_format.finds_by_name:
            return OtherRelation(name, next(iter(unread.values())))
        data_schema, unread = _readable_columns(file_format, data_schema, unread, jvm)
        defaults, without_default = existence_defaults(source.dataSchema(), table_columns, data_schema, jvm)
        if defaults and (from_log or not file_format.fills_defaults):
            raise OTHER_DEFAULTS.declined(title=file_format.title)
        unread |= without_default
        partition_schema = arrow_schema({"fields": stored_partitions}, time_zone)
        names = _table_columns(table_columns, columns, data_schema, time_zone)
    except Unsupported as error:
        return OtherRelation(name, error.reason)
    options = {key.lower(): value for key, value in jvm.java_map(source.options()).items()}
    roots = tuple(jvm.strings(source.location().rootPaths()))
    by_name = {column["name"]: column for column in columns}
    return FileRelation(
        name,
        roots,
        (),
        data_schema,
        partition_schema,
        options,
        unread,
        by_name,
        table_columns=names,
        from_log=from_log,
        defaults=defaults,
        bucket_spec=_bucket_spec(source, jvm),
    )


def _bucket_spec(source: Any, jvm: Jvm) -> BucketSpec | None:
    option = source.bucketSpec()
    if not option.isDefined():
        return None
    spec = option.get()
    return BucketSpec(tuple(jvm.strings(spec.bucketColumnNames())), int(spec.numBuckets()))


def _table_columns(
    table: Sequence[Column], files: Sequence[Column], readable: pa.Schema, time_zone: str
) -> TableColumns | None:
    """The mapping of the table's column names to those in the files; None if they are the same."""
    if all(column is stored for column, stored in zip(table, files, strict=True)):
        return None
    by_stored = {stored["name"]: column for column, stored in zip(table, files, strict=True)}
    struct = {"fields": [by_stored[name] for name in readable.names]}
    fields = arrow_schema(struct, time_zone, reads_variants=True)
    return TableColumns(
        stored={column["name"]: stored for stored, column in by_stored.items()},
        fields=dict(zip(readable.names, fields, strict=True)),
    )


def _schema_and_unread(
    columns: list[Any], time_zone: str, reads_variants: bool
) -> tuple[pa.Schema, dict[str, str]]:
    """The columns that have a type in the engine, and the fallback reasons of the others."""
    fields: list[pa.Field] = []
    unread: dict[str, str] = {}
    for column in columns:
        try:
            if has_coarse_times(column["type"]):
                raise Unsupported(_COARSE_TIMES)
            fields += arrow_schema({"fields": [column]}, time_zone, reads_variants)
        except Unsupported as error:
            unread[column["name"]] = error.reason
    return pa.schema(fields), unread


def _readable_columns(
    file_format: Format, schema: pa.Schema, unread: dict[str, str], jvm: Jvm
) -> tuple[pa.Schema, dict[str, str]]:
    """The columns that the engine can read exactly in this format, and the fallback reasons of the others."""
    fields, unreadable = [], dict(unread)
    for column in schema:
        try:
            if file_format.in_jvm_zone and _has_zone(column.type) and not jvm.is_local():
                title = file_format.title
                raise Unsupported(
                    f"timestamps of {title} files depend on the time zone of each executor's JVM"
                )
            if file_format.check_column is not None:
                file_format.check_column(column)
            fields.append(column)
        except Unsupported as error:
            unreadable[column.name] = error.reason
    return pa.schema(fields), unreadable


def _has_zone(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype)) and dtype.tz is not None
