"""Arguments with which tables are registered: paths, storage options, schemas, and tables in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kquery_spark.errors import SourceError, type_name
from kquery_spark.frontends.sql import parse_type
from kquery_spark.frontends.sql.analyzer.types import supported_type
from kquery_spark.frontends.sql.ast.types import StructType
from kquery_spark.sources.hadoop.hdfs import cluster_of_options, connect_clusters
from kquery_spark.sources.memory import memory_column_type
from kquery_spark.sources.object_stores.connections import connect, store_of_options
from kquery_spark.types.decimals import MAX_PRECISION
from kquery_spark.types.names import spark_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

StorageOptions = Mapping[str, Any] | None
OnePath = str | os.PathLike[str]
Paths = OnePath | Sequence[OnePath]


def path_list(path: Paths) -> list[str]:
    """Return the paths as strings; raises SourceError if there are none, or for an argument of another type."""
    if not isinstance(path, str | os.PathLike | Sequence):
        raise SourceError(f"a path must be a string or a list of strings, not {type_name(path)}")
    many = [path] if isinstance(path, str | os.PathLike) else list(path)
    if not many:
        raise SourceError("no path given")
    return [os.fspath(p) for p in many]


def connect_paths(paths: Sequence[str], storage_options: StorageOptions, spark: SparkSession | None) -> None:
    """Configure access to the buckets and clusters of these paths in this process.

    Without storage_options, access is configured like in the Spark session, if there is one.
    """
    if storage_options is not None:
        clusters = [cluster_of_options(path, storage_options) for path in paths]
        connect_clusters([cluster for cluster in clusters if cluster is not None])
        others = [path for path, cluster in zip(paths, clusters, strict=True) if cluster is None]
        connect([store_of_options(path, storage_options) for path in others])
    elif spark is not None:
        from kquery_spark.context.on_spark import connect_as_spark

        connect_as_spark(spark, paths)


def arrow_schema(schema: pa.Schema | str | None, time_zone: str) -> pa.Schema | None:
    """Return the Arrow schema of an argument that may also be SQL, such as ``"id int, name string"``."""
    if not isinstance(schema, str):
        return schema
    node = parse_type(f"struct<{schema}>")
    assert isinstance(node, StructType)
    fields = []
    for column in node.fields:
        dtype = supported_type(column.type, time_zone, f"column {column.name}: the type")
        fields.append(pa.field(column.name, dtype))
    return pa.schema(fields)


def check_column(field: pa.Field, column: pa.ChunkedArray) -> None:
    """Raise SourceError for values that Spark's types cannot represent."""
    if pa.types.is_decimal256(field.type) and field.type.precision > MAX_PRECISION:
        raise SourceError(
            f"column {field.name} is {field.type}; decimals have at most 38 digits: cast it first"
        )
    if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
        try:
            column.cast(pa.timestamp("us", field.type.tz))
        except pa.ArrowInvalid:
            raise SourceError(
                f"column {field.name} has nanoseconds, which Spark's timestamps cannot store; round it to microseconds"
            ) from None
    elif pa.types.is_nested(field.type) or pa.types.is_duration(field.type):
        dtype = memory_column_type(field)
        try:
            column.cast(dtype)
        except pa.ArrowInvalid as error:
            raise SourceError(
                f"column {field.name} has values that Spark's {spark_name(dtype)} cannot store: {error}"
            ) from None
