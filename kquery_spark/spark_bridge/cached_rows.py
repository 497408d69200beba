"""The files that the rows in Spark's cache were read from, where they are nothing but columns of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kquery_spark.sources.features import Feature
from kquery_spark.spark_bridge.jvm import Jvm
from kquery_spark.spark_bridge.plan_shape import TREE, has_subqueries
from kquery_spark.spark_bridge.plan_tree import CatalystNode, parse_expression

_EXECUTION = "org.apache.spark.sql.execution."
_SCAN = f"{_EXECUTION}FileSourceScanExec"
_PROJECT = f"{_EXECUTION}ProjectExec"
# Operators that pass on all rows and columns of the one below.
_PASSING = frozenset(
    f"{_EXECUTION}{name}" for name in ("WholeStageCodegenExec", "InputAdapter", "ColumnarToRowExec")
)
_LISTING = f"{_EXECUTION}FileSourceScanLike$GenericScanFileListing"

UNFILLED_CACHE = Feature(
    "caches that are not full: not filled yet, or too large for their storage level",
    reason="the rows of a cache that is not full are read by Spark",
)
COMPUTED_CACHE = Feature(
    "caches of anything else: filtered, computed, joined, sorted, repartitioned rows",
    reason="cached rows are read by Spark",
)
CACHE_OF_OTHER_FORMAT = Feature(
    "caches of files of other formats",
    reason="cached rows of {format} files are read by Spark",
)
CACHE_OF_REMOTE_FILES = Feature(
    "caches of files on other filesystems", reason="cached rows of {path} are read by Spark"
)
CACHE_OF_CHANGED_FILES = Feature(
    "caches of files that changed since, or that are gone",
    reason="cached rows are read by Spark where a file has changed since: {path}",
)


@dataclass(frozen=True)
class CachedScan:
    """The scan that filled a cache.

    source: the HadoopFsRelation. directories: a Scala list of ``PartitionDirectory`` objects, with the files that the scan
    read. columns: what the relation calls the columns of the cache, in their order.
    """

    source: Any
    directories: Any
    columns: tuple[str, ...]


def cached_scan(builder: Any, jvm: Jvm) -> CachedScan:
    """The scan by which a ``CachedRDDBuilder`` was filled; Unsupported unless that is full, and of columns of files."""
    if not builder.isCachedColumnBuffersLoaded():
        raise UNFILLED_CACHE.declined()
    plan, projections = builder.cachedPlan(), []
    while (kind := jvm.class_name(plan)) != _SCAN:
        if kind == _PROJECT:
            projections.append(_expressions(plan.projectList(), jvm))
        elif kind not in _PASSING:
            raise COMPUTED_CACHE.declined()
        plan = plan.children().apply(0)
    filters = plan.partitionFilters()
    if any(has_subqueries(jvm, filters.apply(i)) for i in range(filters.length())):
        raise COMPUTED_CACHE.declined()  # the scan chose its files when it ran
    if not plan.fileConstantMetadataColumns().isEmpty():
        raise COMPUTED_CACHE.declined()
    listing = plan.selectedPartitions()
    if jvm.class_name(listing) == _LISTING:
        listing = listing.partitionDirectories()
    return CachedScan(plan.relation(), jvm.list_of(listing), _names(plan, projections[::-1], jvm))


def _names(scan: Any, projections: Sequence[Sequence[CatalystNode]], jvm: Jvm) -> tuple[str, ...]:
    """The relation's names of what is left of a scan's columns after projections, from the lowest up."""
    output = _expressions(scan.output(), jvm)
    names: dict[int, str] = {column["exprId"]: column["name"] for column in output}
    for projection in projections:
        names = {named["exprId"]: names[_column(named)["exprId"]] for named in projection}
    top = projections[-1] if projections else output
    return tuple(names[named["exprId"]] for named in top)


def _column(named: CatalystNode) -> CatalystNode:
    """The column that an item of a projection passes on."""
    column = named.children[0] if named.cls == "Alias" else named
    if column.cls != "AttributeReference":
        raise COMPUTED_CACHE.declined()
    return column


def _expressions(sequence: Any, jvm: Jvm) -> list[CatalystNode]:
    texts = jvm.strings(jvm.mapped(sequence, jvm.getter(TREE, "toJSON")))
    return [parse_expression(text) for text in texts]
