"""Detects whether tables of the catalog, of Delta and of Iceberg may have changed since a query was planned.

Spark fixes the files of plain paths when a DataFrame is defined. The files of tables can change until its action, by INSERT,
REFRESH, ALTER or a commit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.plan_shape import TREE, has_subqueries
from kquery_spark.spark_bridge.relations.delta import DELTA_PACKAGE, has_newest_snapshot
from kquery_spark.spark_bridge.relations.delta_snapshots import PREPARES_SCANS, DeltaSnapshots
from kquery_spark.spark_bridge.session.bridge import Bridge

_EXECUTIONS = "org.apache.spark.sql.execution.SQLExecution$"
_RELATION = "Relation "  # what the text of a relation of files starts with; next is the table's name, if it is one, and "["
_HIVE = "HiveTableRelation "
_V2 = "RelationV2"  # Iceberg's, whose scan takes the snapshot at planning
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_DELTA_SETTINGS = ("spark.sql.catalog.spark_catalog", "spark.sql.extensions")
_STALE_SECONDS = 5.0  # seconds after which another application may have changed a table, too


@dataclass(frozen=True)
class SparkPlan:
    """Spark's optimized plan of a query; ``snapshot``: when it was made, of a query that reads tables of the catalog.

    ``delta_snapshots``: of Delta tables whose scans Delta has not prepared, for which the engine must run the whole query.
    """

    optimized: Any
    snapshot: CatalogSnapshot | None
    delta_snapshots: DeltaSnapshots | None = None


def spark_plan(frame: DataFrame, link: Bridge, *, delta_prepares: bool = False) -> SparkPlan:
    """The plan with the files of now.

    Of tables it is made from a copy: Spark keeps a DataFrame's own plan, and what it has of partitions with it, so that the
    DataFrame would never see what happens to them later. delta_prepares: have Delta prepare its scans in any case.
    """
    leaves = _leaves(link.analyzed(frame), link.jvm)
    if not _reads_tables(leaves, link):
        return SparkPlan(link.optimized(frame), None)
    delta_snapshots = None if delta_prepares else _delta_snapshots(leaves, link)
    snapshot = CatalogSnapshot(link)
    copy = unplanned_copy(frame, link)
    if delta_snapshots is None:
        return SparkPlan(link.optimized(copy), snapshot)
    return SparkPlan(link.optimized_without(copy, PREPARES_SCANS), snapshot, delta_snapshots)


def _delta_snapshots(leaves: Sequence[Any], link: Bridge) -> DeltaSnapshots | None:
    """The snapshots of the Delta tables among the leaves, if there are some and all have few files."""
    if not _has_delta(link):
        return None
    snapshots = DeltaSnapshots(link.jvm, str(link.conf.sessionLocalTimeZone()))
    try:
        few_files = snapshots.pin(leaves)
    except Unsupported:  # a table changes just now
        return None
    return snapshots if few_files else None


def unplanned_copy(frame: DataFrame, link: Bridge) -> DataFrame:
    """Another DataFrame of the same analyzed plan, which Spark has not planned yet."""
    return link.frame(link.analyzed(frame))


def _reads_tables(leaves: Sequence[Any], link: Bridge) -> bool:
    """Return whether a leaf of the analyzed plan is, or could be, a table of the catalog, of Delta or of Iceberg."""
    try:
        strings = [leaf for some in leaves for leaf in link.jvm.strings(some)]
    except Unsupported:  # a name with a control character
        return True
    if any(map(_is_table, strings)):
        return True
    return any(text.startswith(_RELATION) for text in strings) and _has_delta(link)


def _is_table(leaf: str) -> bool:
    is_path = leaf.startswith(f"{_RELATION}[")
    return leaf.startswith((_HIVE, _V2, _RELATION)) and not is_path


def _reads_newest_versions(optimized: Any, link: Bridge) -> bool:
    """Return whether all tables of an optimized plan are Delta's, at the newest version that this JVM knows."""
    leaves = _leaves(optimized, link.jvm)
    try:
        strings = [link.jvm.strings(some) for some in leaves]
    except Unsupported:  # a name with a control character
        return False
    return all(
        _is_newest_or_plain(text, some.apply(number), link.jvm)
        for some, its_strings in zip(leaves, strings, strict=True)
        for number, text in enumerate(its_strings)
        if text.startswith((_HIVE, _V2, _RELATION))
    )


def _is_newest_or_plain(text: str, leaf: Any, jvm: Jvm) -> bool:
    """Return whether a relation is a Delta table at its newest version, or files by path."""
    if not text.startswith(_RELATION) or jvm.class_name(leaf.relation()) != _FILES:
        return False
    index = leaf.relation().location()
    if jvm.class_name(index).startswith(DELTA_PACKAGE):
        return has_newest_snapshot(index, jvm)
    return not _is_table(text)


def _leaves(plan: Any, jvm: Jvm) -> list[Any]:
    """The leaves of a plan, and those of its subqueries, each as a ``Seq`` of the JVM."""
    leaves = [plan.collectLeaves()]
    if has_subqueries(jvm, plan):
        leaves.append(jvm.flat_map_sequence(plan.subqueriesAll(), jvm.getter(TREE, "collectLeaves")))
    return leaves


def _has_delta(link: Bridge) -> bool:
    """Return whether the session is set up for Delta, whose tables look like plain files where they are read by path.

    A catalog of another system may stand in for that of Delta, whose extension is there in any case.
    """
    return any("delta" in str(link.conf.getConfString(name, "")).lower() for name in _DELTA_SETTINGS)


class CatalogSnapshot:
    """When planning began, and whether a query that ran or ended since then may have changed a table.

    Take it before files are listed. A statement that is running then may commit at any time, so nothing is certain after it.
    """

    def __init__(self, link: Bridge) -> None:
        self._link = link
        self._time = time.monotonic()
        self._frames = link.frames_made
        self._query = self._number()
        self._stale = _runs_statements(link)

    def _number(self) -> int:
        """Spark numbers all queries of the JVM, and every command is one."""
        return self._link.next_query_number()

    def end_planning(self, optimized: Any) -> None:
        """Restart the snapshot now, unless a query other than planning's own may have changed a table since it was taken.

        Delta plans by queries of its own, which cannot be distinguished from others; then the versions of tables decide.
        """
        last, self._query = self._query, self._number()
        own_queries = self._link.frames_made - self._frames
        ran_others = self._query != last + own_queries + 1
        self._stale = self._stale or (ran_others and not _reads_newest_versions(optimized, self._link))

    def is_stale(self) -> bool:
        """True if table metadata must be read again; stays true from then on."""
        last, self._query = self._query, self._number()
        old = time.monotonic() - self._time > _STALE_SECONDS
        self._stale = self._stale or old or self._query != last + 1
        return self._stale


def _runs_statements(link: Bridge) -> bool:
    """Return whether any query or command of this JVM is running now."""
    try:
        return not link.jvm.static_call(_EXECUTIONS, "executionIdToQueryExecution").isEmpty()
    except Exception:  # py4j's: this Spark does not say so
        return True
