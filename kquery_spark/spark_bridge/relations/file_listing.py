"""Lists the files of a relation like Spark, with their sizes, modification times and partition values."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.sources.file_relation import FileRelation, ListedFile
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.literal_values import from_text, scalar
from kquery_spark.spark_bridge.relations import delta
from kquery_spark.spark_bridge.relations.delta_snapshots import DeltaSnapshots

_SOURCES = "org.apache.spark.sql.execution.datasources."
_DIRECTORY = f"{_SOURCES}PartitionDirectory"
_FILE = f"{_SOURCES}FileStatusWithMetadata"
_FACTS = ("getPath", "org.apache.hadoop.fs.Path toUri"), ("getLen",), ("getModificationTime",)
_STRUCT = "org.apache.spark.sql.types.StructType"


def listed_files(
    source: Any, relation: FileRelation, jvm: Jvm, snapshots: DeltaSnapshots
) -> tuple[ListedFile, ...]:
    """The files of a HadoopFsRelation that Spark itself would read: ``listFiles`` omits hidden and empty ones."""
    if relation.from_log:
        listing = partial(_files_of_log, source=source, relation=relation, jvm=jvm)
        return snapshots.files(source.location(), listing)
    seq = jvm.scala.seq
    directories: tuple[tuple[Any, ...], ...] = (
        (f"{_SOURCES}HadoopFsRelation", "location"),
        (f"{_SOURCES}FileIndex", "listFiles", seq, jvm.empty(), seq, jvm.empty()),
    )
    if not len(relation.partition_schema):  # one JVM function lists the files and prints their facts
        files = _parsed_files(_facts_of_files(source, _path_size_time(jvm), jvm, *directories))
    else:
        listed = jvm.steps("directories", *directories).apply(source)
        files = files_of(listed, source, relation, jvm)
    return in_reading_order(files, relation)


def in_reading_order(files: tuple[ListedFile, ...], relation: FileRelation) -> tuple[ListedFile, ...]:
    """Sort files in the order in which Spark's scan reads them: larger files first, except for bucketed reads.

    The order affects ties in ``min_by``, and whether 0.0 or -0.0 is the key of a group. If Spark splits a file, it reads the
    last part, which is smaller, after files with more bytes (``FileSourceScanExec.createReadRDD``).
    """
    if relation.bucket_spec is not None:
        return files
    return tuple(sorted(files, key=lambda file: -file.size))


def _files_of_log(directories: Any, source: Any, relation: FileRelation, jvm: Jvm) -> tuple[ListedFile, ...]:
    """The files of a Delta table, with their deletion vectors."""
    files = files_of(directories, source, relation, jvm)
    vectors = delta.deletion_vectors(partial(_facts_of_files, directories, jvm=jvm), relation.roots[0], jvm)
    known = tuple(replace(file, deleted=vector) for file, vector in zip(files, vectors, strict=True))
    return in_reading_order(known, relation)


def files_of(directories: Any, source: Any, relation: FileRelation, jvm: Jvm) -> tuple[ListedFile, ...]:
    """The files of a ``Seq[PartitionDirectory]``. source: the HadoopFsRelation that they belong to."""
    schema = relation.partition_schema
    files = _parsed_files(_facts_of_files(directories, _path_size_time(jvm), jvm))
    if not len(schema):
        return files
    counts = jvm.map_strings(directories, jvm.getter(_DIRECTORY, "files", f"{jvm.scala.seq} length"))
    rows = jvm.map_sequence(directories, jvm.getter(_DIRECTORY, "values")).toIndexedSeq()
    values = _partition_values(rows, source.partitionSchema(), schema, jvm)
    partitions = [row for row, n in zip(values, counts, strict=True) for _ in range(int(n))]
    return tuple(
        replace(file, partition=partition) for file, partition in zip(files, partitions, strict=True)
    )


def _parsed_files(facts: list[str]) -> tuple[ListedFile, ...]:
    """Parse the printed results of ``_path_size_time``, for example ``(file:/t/a.parquet,1024,1700000000000)``."""
    parts = (text[1:-1].rsplit(",", 2) for text in facts)
    return tuple(ListedFile(uri, int(size), int(time), ()) for uri, size, time in parts)


def _path_size_time(jvm: Jvm) -> Any:
    """The Scala function that returns the path, size and modification time of a file's status."""
    return jvm.tuple_getter(_FILE, *_FACTS)


def _facts_of_files(owner: Any, fact: Any, jvm: Jvm, *listing: tuple[Any, ...]) -> list[str]:
    """Evaluate ``fact``, a function of a file's status, for each listed file; returns strings.

    listing: the steps from ``owner`` to a ``Seq[PartitionDirectory]``; none if it is that sequence itself.
    """
    key = f"files {fact._get_object_id()}"
    of_directory = jvm.steps(key, (_DIRECTORY, "files"), jvm.map_step("map", fact))
    methods = ".".join(method for _, method, *_ in listing)
    return jvm.strings_of_steps(f"{methods} {key}", owner, *listing, jvm.map_step("flatMap", of_directory))


def _partition_values(rows: Any, struct: Any, schema: pa.Schema, jvm: Jvm) -> list[tuple[pa.Scalar, ...]]:
    columns = []
    for i, (column, given) in enumerate(zip(schema, schema_columns(struct, jvm), strict=True)):
        strings = jvm.column_strings(rows, i, given["type"])
        if pa.types.is_decimal(column.type) and any(
            -int(Decimal(text).as_tuple().exponent) != column.type.scale
            for text in strings
            if text is not None
        ):
            raise Unsupported(f"directories of {column.name} have other decimal places than its type")
        columns.append(
            [scalar(None if text is None else from_text(text, column.type), column.type) for text in strings]
        )
    return list(zip(*columns, strict=True))


def schema_columns(struct: Any, jvm: Jvm) -> list[Any]:
    """The JSON of the columns of a StructType."""
    fields: list[Any] = json.loads(jvm.text(struct, _STRUCT, "json"))["fields"]
    return fields
