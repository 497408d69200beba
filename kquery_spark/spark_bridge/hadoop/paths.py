"""Translates Hadoop's paths to the engine's paths of the same files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kquery_spark.cached_property import cached_property
from kquery_spark.sources.hadoop.hdfs import authority_of
from kquery_spark.sources.object_stores.connections import bucket_of, connect
from kquery_spark.spark_bridge.hadoop.hdfs import HdfsClusters
from kquery_spark.spark_bridge.hadoop.object_store_features import OTHER_FILESYSTEM
from kquery_spark.spark_bridge.hadoop.object_stores import object_store
from kquery_spark.spark_bridge.hadoop.view_filesystem import SCHEME, MountTables
from kquery_spark.spark_bridge.jvm.calls import Jvm


class HadoopPaths:
    """Finds out how Spark accesses the files of a plan, and makes this process access them in the same way.

    configuration: returns the session's Hadoop configuration. workers_have_client: returns True if Spark's Python workers
    have hdfs-native.
    """

    def __init__(
        self, configuration: Callable[[], Any], jvm: Jvm, workers_have_client: Callable[[], bool]
    ) -> None:
        self._configuration = configuration
        self._clusters = HdfsClusters(configuration, jvm, workers_have_client)
        self._mount_tables = MountTables(configuration, jvm)
        self._connected: set[tuple[str, str]] = set()

    @cached_property
    def _default_filesystem(self) -> str:
        """The URI of the default filesystem, to which paths without a scheme belong."""
        return str(self._configuration().getTrimmed("fs.defaultFS") or "file:").rstrip("/")

    def engine_path(self, path: str) -> str:
        """Return the path by which the engine opens a file; raises Unsupported for filesystems that it does not read.

        path: an unescaped path, like ``file:/a b`` or ``s3a://bucket/a b``. A path without a scheme belongs to the
        default filesystem.
        """
        scheme, colon, rest = path.partition(":")
        if not colon and path.startswith("/"):
            if self._default_filesystem.startswith("file:"):
                return path
            return self.engine_path(f"{self._default_filesystem}{path}")
        if scheme == "file":
            return "/" + rest.lstrip("/")
        if scheme == SCHEME:
            return self.engine_path(self._mount_tables.target(path))
        authority = authority_of(path)
        if authority:
            self._clusters.connect(path, authority)
            return path
        bucket = bucket_of(path)
        if bucket is None:
            raise OTHER_FILESYSTEM.declined(scheme=scheme)
        if (scheme, bucket) not in self._connected:
            connect([object_store(self._configuration(), scheme, bucket)])
            self._connected.add((scheme, bucket))
        return path
