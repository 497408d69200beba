"""Detects whether tables (of the catalog, Delta or Iceberg) or current values may have changed since a query was planned.

Spark fixes the files of plain paths when a DataFrame is defined. The files of tables can change until its action, by INSERT,
REFRESH, ALTER or a commit. The same applies to the values of ``current_timestamp()`` and similar functions, which Spark
evaluates when it plans an action.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.plan_shape import TREE, has_current_values, has_subqueries
from kquery_spark.spark_bridge.relations.delta import DELTA_PACKAGE, has_newest_snapshot
from kquery_spark.spark_bridge.relations.delta_snapshots import PREPARES_SCANS, DeltaSnapshots
from kquery_spark.spark_bridge.session.bridge import Bridge
from kquery_spark.spark_bridge.session.settings import session_values

_EXECUTIONS = "org.apache.spark.sql.execution.SQLExecution$"
_RELATION = "Relation "  # the printed relation begins with this, the name of the table, if it is one, and "["
_HIVE = "HiveTableRelation "
_V2 = "RelationV2"  # a relation of Iceberg, whose scan selects the snapshot when it is planned
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_DELTA_SETTINGS = ("spark.sql.catalog.spark_catalog", "spark.sql.extensions")
_STALE_SECONDS = 5.0  # after this time, another application is assumed to have changed a table
_STALE_VALUE_SECONDS = 0.1  # after this time, an action needs a new value of current_timestamp()


@dataclass(frozen=True)
class SparkPlan:
    """Spark's optimized plan of a query.

    snapshot: detects that the plan is out of date; None if it reads no catalog tables and has no current values, so
    that it stays current. delta_snapshots: the snapshots of Delta tables whose scans Delta has not prepared, so the engine
    must run the whole query; None without any.
    """

    optimized: Any
    snapshot: CatalogSnapshot | None
    delta_snapshots: DeltaSnapshots | None = None


def spark_plan(frame: DataFrame, bridge: Bridge, *, delta_prepares: bool = False) -> SparkPlan:
    """The optimized plan of a DataFrame, with the current files of its tables.

    If the DataFrame reads tables, a copy of it is optimized. Spark caches the plan of a DataFrame together with its
    partitions, so the DataFrame itself would never see later changes. delta_prepares: let Delta prepare its scans in any
    case.
    """
    analyzed = bridge.command_executed(frame)
    leaves = _leaves(analyzed, bridge.jvm)
    current_values = has_current_values(bridge.jvm, analyzed)
    if not _reads_tables(leaves, bridge):
        if not current_values:
            return SparkPlan(bridge.optimized(frame), None)
        snapshot = CatalogSnapshot(bridge, reads_tables=False, has_current_values=True)
        return SparkPlan(bridge.optimized(frame), snapshot)
    delta_snapshots = None if delta_prepares else _delta_snapshots(leaves, bridge)
    snapshot = CatalogSnapshot(bridge, reads_tables=True, has_current_values=current_values)
    copy = unplanned_copy(frame, bridge)
    if delta_snapshots is None:
        return SparkPlan(bridge.optimized(copy), snapshot)
    return SparkPlan(bridge.optimized_without(copy, PREPARES_SCANS), snapshot, delta_snapshots)


def _delta_snapshots(leaves: Sequence[Any], bridge: Bridge) -> DeltaSnapshots | None:
    """The snapshots of the Delta tables among the leaves; None if there are none, or if one of them has many files."""
    if not _has_delta(bridge):
        return None
    snapshots = DeltaSnapshots(bridge.jvm, str(bridge.conf.sessionLocalTimeZone()))
    try:
        few_files = snapshots.pin(leaves)
    except Unsupported:  # a table is changing
        return None
    return snapshots if few_files else None


def unplanned_copy(frame: DataFrame, bridge: Bridge) -> DataFrame:
    """A new DataFrame with the same analyzed plan, which Spark has not optimized yet."""
    return bridge.frame(bridge.command_executed(frame))


def _reads_tables(leaves: Sequence[Any], bridge: Bridge) -> bool:
    """Return whether a leaf of the analyzed plan is, or could be, a table of the catalog, of Delta or of Iceberg."""
    try:
        strings = [leaf for some in leaves for leaf in bridge.jvm.strings(some)]
    except Unsupported:  # a name with a control character
        return True
    if any(map(_is_table, strings)):
        return True
    return any(text.startswith(_RELATION) for text in strings) and _has_delta(bridge)


def _is_table(leaf: str) -> bool:
    is_path = leaf.startswith(f"{_RELATION}[")
    return leaf.startswith((_HIVE, _V2, _RELATION)) and not is_path


def _reads_newest_versions(optimized: Any, bridge: Bridge) -> bool:
    """Return whether all tables of an optimized plan are Delta tables at the newest version known to this JVM."""
    leaves = _leaves(optimized, bridge.jvm)
    try:
        strings = [bridge.jvm.strings(some) for some in leaves]
    except Unsupported:  # a name with a control character
        return False
    return all(
        _is_newest_or_plain(text, some.apply(number), bridge.jvm)
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


def _has_delta(bridge: Bridge) -> bool:
    """Return whether the session has Delta's extension. Delta tables that are read by path look like plain files.

    The catalog is not checked, because the catalog of another system may replace Delta's.
    """
    values = session_values(bridge.conf, bridge.jvm, _DELTA_SETTINGS, unset="")
    return any("delta" in value.lower() for value in values)


class CatalogSnapshot:
    """The time at which planning began, to find out whether tables or current values may have changed since then.

    reads_tables: whether the query reads tables. has_current_values: whether it calls ``current_timestamp()`` or a similar
    function. Create the snapshot before files are listed. If the query reads tables and a statement is running at that time,
    the statement may commit at any later time, so the snapshot is stale from the beginning.
    """

    def __init__(self, bridge: Bridge, reads_tables: bool, has_current_values: bool) -> None:
        self.reads_tables = reads_tables
        self.has_current_values = self._values_change = has_current_values
        self._bridge = bridge
        self._started_at = self._planned_at = time.monotonic()
        self._frames = bridge.frames_made
        self._query = self._number()
        self._stale = reads_tables and _runs_statements(bridge)

    def _number(self) -> int:
        """Return the number of the next query, which this call uses up.

        Spark numbers all queries and commands of the JVM. So if nothing else ran between two calls, their numbers differ
        by one, plus one for each DataFrame that the bridge has created.
        """
        return self._bridge.next_query_number()

    def end_planning(self, optimized: Any) -> None:
        """Restart the snapshot now, unless a query other than planning's own may have changed a table since it was taken.

        Delta runs queries of its own for planning, which cannot be distinguished from others. In that case the versions of
        the tables are compared.
        """
        self._planned_at = time.monotonic()
        last, self._query = self._query, self._number()
        own_queries = self._bridge.frames_made - self._frames
        ran_others = self._query != last + own_queries + 1
        self._stale = self._stale or (ran_others and not _reads_newest_versions(optimized, self._bridge))

    def keep_values(self) -> None:
        """Do not let current values that have changed since planning make the snapshot stale."""
        self._values_change = False

    def is_stale(self) -> bool:
        """True if the query must be planned again; stays true from then on."""
        last, self._query = self._query, self._number()
        now = time.monotonic()
        are_tables_old = now - self._started_at > _STALE_SECONDS
        are_values_old = self._values_change and now - self._planned_at > _STALE_VALUE_SECONDS
        self._stale = self._stale or are_tables_old or are_values_old or self._query != last + 1
        return self._stale


def _runs_statements(bridge: Bridge) -> bool:
    """Return whether any query or command of this JVM is running now."""
    try:
        return not bridge.jvm.call(_EXECUTIONS, "executionIdToQueryExecution").isEmpty()
    except Exception:  # a py4j error: this Spark has no such method
        return True
