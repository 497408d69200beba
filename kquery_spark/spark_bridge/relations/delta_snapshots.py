"""The snapshots of the Delta tables in one plan, and their files, which are listed once per snapshot.

An optimizer rule of Delta runs a Spark job to list the files of each scan of each query. If all tables have few files,
planning omits this rule (``Bridge.optimized_without``). Instead, the engine caches the files of each snapshot, and prunes
them by their partitions and their own statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kquery_spark.sources.delta.features import CHANGED, OLD_DELTA, OTHER_INDEX
from kquery_spark.sources.file_relation import ListedFile
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.relations.delta import DELTA_PACKAGE, FORMAT_CLASS, LATEST, PREPARED

PREPARES_SCANS = f"{DELTA_PACKAGE}stats.PrepareDeltaScan"
"""Delta's optimizer rule that lists files."""
MAX_FILES = 100
"""For tables with more files, Delta's pruning by the statistics in its log saves more than its job costs."""
_FILTER_ID_KEY = "FILE_ROW_INDEX_FILTER_ID_ENCODED"
_MANY_FILES = "many files"
_DATASOURCES = "org.apache.spark.sql.execution.datasources."

Listing = Callable[[Any], tuple[ListedFile, ...]]


class DeltaSnapshots:
    """The snapshots of one plan. As in Delta, all scans of a table share one, except for scans of a specified version.

    time_zone: the session's time zone, in which Delta returns partition values.
    """

    def __init__(self, jvm: Jvm, time_zone: str) -> None:
        self._jvm = jvm
        self._time_zone = time_zone
        # The key is Delta's file index; indexes of the same version of a table are equal.
        self._pinned: Any = None

    def pin(self, leaves: Sequence[Any]) -> bool:
        """Pin the newest snapshots of the Delta tables among a plan's leaves, and list their files.

        leaves: ``Seq`` objects of plans, before Delta prepares their scans. Returns False without Delta tables, or
        if one of them has many files.
        """
        found = [index for some in leaves for index in self._indexes(some)]
        if not found or any(kind != LATEST for kind, _ in found):
            return False
        for _, index in found:
            snapshot = self._snapshot(index)
            if snapshot is None or self._directories(index, snapshot) is _MANY_FILES:
                return False
        return True

    def files(self, index: Any, listing: Listing) -> tuple[ListedFile, ...]:
        """The files of a relation, given its index. listing: converts the result of an index's ``listFiles``.

        For a scan that Delta has prepared, files that Delta has pruned by the log's statistics are missing. Raises
        Unsupported for indexes other than those of a table's snapshot.
        """
        jvm, kind = self._jvm, self._jvm.class_name(index)
        if kind not in (LATEST, PREPARED):
            raise OTHER_INDEX.declined(index=kind.rsplit(".", 1)[-1])
        if not jvm.has_method(f"{FORMAT_CLASS}$", _FILTER_ID_KEY):
            raise OLD_DELTA.declined()
        if kind == PREPARED:
            return listing(index.listFiles(index.preparedScan().allFilters().toSeq(), jvm.empty()))
        snapshot = self._snapshot(index)
        directories = _MANY_FILES if snapshot is None else self._directories(index, snapshot)
        if directories is _MANY_FILES:
            return listing(index.listFiles(jvm.empty(), jvm.empty()))
        variant = f"Delta's files {self._time_zone}"
        return jvm.cached_value(snapshot, variant, lambda: listing(directories))

    def _indexes(self, leaves: Any) -> list[tuple[str, Any]]:
        """The file indexes of Delta in a ``Seq`` of leaves, each with its class."""
        jvm, seq = self._jvm, self._jvm.scala.seq
        relation, files = f"{_DATASOURCES}LogicalRelation", f"{_DATASOURCES}HadoopFsRelation"
        locations = jvm.steps(
            "locations of leaves",
            (seq, "filter", "scala.Function1", jvm.is_instance(relation)),
            jvm.map_step("map", jvm.getter(relation, "relation")),
            (seq, "filter", "scala.Function1", jvm.is_instance(files)),
            jvm.map_step("map", jvm.getter(files, "location")),
        ).apply(leaves)
        kinds = jvm.class_names(locations)
        return [(kind, locations.apply(i)) for i, kind in enumerate(kinds) if kind.startswith(DELTA_PACKAGE)]

    def _snapshot(self, index: Any) -> Any:
        """The snapshot that all scans of the index's table read; None if the index lists only a part of the table."""
        if self._pinned is None:
            self._pinned = self._jvm.new("java.util.HashMap")
        snapshot = self._pinned.get(index)
        if snapshot is None and index.partitionFilters().isEmpty():
            snapshot = index.getSnapshot()
            self._pinned.put(index, snapshot)
        return snapshot

    def _directories(self, index: Any, snapshot: Any) -> Any:
        """Return the files that an index lists for a snapshot, as a ``Seq[PartitionDirectory]``, or ``_MANY_FILES``."""

        def listed() -> Any:
            if int(snapshot.numOfFiles()) > MAX_FILES:
                return _MANY_FILES
            directories = index.listFiles(self._jvm.empty(), self._jvm.empty())
            if not index.isTimeTravelQuery() and not snapshot.equals(index.getSnapshot()):
                raise CHANGED.declined()
            return directories

        return self._jvm.cached_value(snapshot, f"Delta's directories {self._time_zone}", listed)
