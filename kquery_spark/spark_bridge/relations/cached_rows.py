"""Finds the files from which Spark's cache was filled, if the cached rows are plain columns of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kquery_spark.sources.features import Feature
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.plan_facts import parsed_expressions
from kquery_spark.spark_bridge.plan.plan_shape import has_subqueries, node_class_names
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

_EXECUTION = "org.apache.spark.sql.execution."
_SCAN = f"{_EXECUTION}FileSourceScanExec"
_PROJECT = f"{_EXECUTION}ProjectExec"
# Operators that return all rows of their child.
_PASSING = frozenset(
    f"{_EXECUTION}{name}"
    for name in ("WholeStageCodegenExec", "InputAdapter", "ColumnarToRowExec", "ProjectExec")
)
_LISTING = f"{_EXECUTION}FileSourceScanLike$GenericScanFileListing"

UNFILLED_CACHE = Feature(
    "caches that are not full: not filled yet, or too large for their storage level",
    reason="a cache that is not completely filled is not supported",
)
COMPUTED_CACHE = Feature(
    "caches of anything else: rows of table formats, filtered, computed, joined, sorted, repartitioned rows",
    reason="cached rows other than plain columns of files are not supported",
)
CACHE_OF_OTHER_FORMAT = Feature(
    "caches of files of other formats",
    reason="cached rows of {format} files are not supported",
)
CACHE_OF_REMOTE_FILES = Feature(
    "caches of files on other filesystems", reason="cached rows of {path} are not supported"
)
CACHE_OF_CHANGED_FILES = Feature(
    "caches of files that were changed or deleted since",
    reason="cached rows are not supported if a file has changed since: {path}",
)


@dataclass(frozen=True)
class CachedScan:
    """The scan that filled a cache.

    source: the HadoopFsRelation. directories: a Scala list of ``PartitionDirectory`` objects, with the files that the scan
    read. columns: the relation's names of the cached columns, in the order of the cache.
    """

    source: Any
    directories: Any
    columns: tuple[str, ...]


def cached_scan(builder: Any, jvm: Jvm) -> CachedScan:
    """Return the scan that filled a ``CachedRDDBuilder``.

    Raises Unsupported unless the cache is completely filled, and only with plain columns of files.
    """
    if not builder.isCachedColumnBuffersLoaded():
        raise UNFILLED_CACHE.declined()
    plan = builder.cachedPlan()
    classes = node_class_names(jvm, plan)
    if classes[-1] != _SCAN or not _PASSING.issuperset(classes[:-1]):
        raise COMPUTED_CACHE.declined()
    scan = plan.collectLeaves().apply(0)
    filters = scan.partitionFilters()
    if any(has_subqueries(jvm, filters.apply(i)) for i in range(filters.length())):
        raise COMPUTED_CACHE.declined()  # the scan selected its files at run time
    if not scan.fileConstantMetadataColumns().isEmpty():
        raise COMPUTED_CACHE.declined()
    listing = scan.selectedPartitions()
    if jvm.class_name(listing) == _LISTING:
        listing = listing.partitionDirectories()
    columns = tuple(name for _, name in _columns(plan, classes, jvm))
    return CachedScan(scan.relation(), jvm.list_of(listing), columns)


def _columns(plan: Any, classes: Sequence[str], jvm: Jvm) -> list[tuple[int, str]]:
    """The expression id and the relation's name of each column of a plan. classes: its operators; the scan is the last."""
    operator, *below = classes
    if operator == _SCAN:
        return [(column["exprId"], column["name"]) for column in parsed_expressions(plan.output(), jvm)]
    columns = _columns(plan.children().apply(0), below, jvm)
    if operator != _PROJECT:
        return columns
    names = dict(columns)
    projected = parsed_expressions(plan.projectList(), jvm)
    return [(named["exprId"], names[_column(named)["exprId"]]) for named in projected]


def _column(named: CatalystNode) -> CatalystNode:
    """The column in an item of a projection; raises Unsupported for a computed item."""
    column = named.children[0] if named.cls == "Alias" else named
    if column.cls != "AttributeReference":
        raise COMPUTED_CACHE.declined()
    return column
