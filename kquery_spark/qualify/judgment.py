"""Decides for each node of a logged physical plan whether the engine would run it, and if not, why.

A log has no session and no Catalyst plan, only names and strings. Unknown operators and functions count as unsupported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from kquery_spark.frontends.catalyst.importer import support_table
from kquery_spark.frontends.catalyst.support import Level, Row
from kquery_spark.qualify.functions import call_support
from kquery_spark.qualify.operators import STEPS, Kind, operator, unread_format
from kquery_spark.qualify.plan import PhysicalNode
from kquery_spark.types.str_enum import StrEnum


class RunsOn(StrEnum):
    """Where a node would run."""

    ENGINE = "engine"
    SPARK = "Spark"


NO_EXPENSIVE_OPERATOR = "a part with only scans, filters and projections gains nothing in the engine"
_PARTITION_FILTERS = "PartitionFilters"
# Operators whose input Spark sorts within partitions; the engine's operators do not need that sort.
_SORTED_INPUT = ("SortMergeJoin", "Window", "WindowGroupLimit", "SortAggregate")


@dataclass(frozen=True)
class JudgedNode:
    """A plan node that does work, without the wrappers around it.

    reason: why Spark runs the node; empty if the engine does. conditions: conditions of the support table that a log does
    not show. kind: the node's kind of work.
    """

    node: PhysicalNode
    depth: int
    kind: Kind
    runs: RunsOn
    reason: str = ""
    conditions: tuple[str, ...] = ()
    children: tuple[JudgedNode, ...] = ()

    def walk(self) -> Iterator[JudgedNode]:
        """Yield the node and all nodes below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += reversed(node.children)


def judge(plan: PhysicalNode, version: str) -> tuple[JudgedNode, ...]:
    """Judge the plan for a version of Spark; returns the top nodes that do work, with the nodes below as children."""
    tops = _judged(plan, None, 0, version)
    return tuple(_without_idle_parts(top, is_root=True) for top in tops)


def _judged(node: PhysicalNode, consumer: str | None, depth: int, version: str) -> tuple[JudgedNode, ...]:
    """Return the judged node; for a wrapper or an exchange, the judged nodes below it."""
    if node.is_wrapper or node.is_exchange:
        return tuple(top for child in node.children for top in _judged(child, consumer, depth, version))
    kind, reason, conditions = _verdict(node, consumer, version)
    # Spark also runs the plan that fills a cache
    below = () if node.name == "InMemoryTableScan" else node.children
    children = tuple(top for child in below for top in _judged(child, node.name, depth + 1, version))
    return (
        JudgedNode(
            node, depth, kind, RunsOn.SPARK if reason else RunsOn.ENGINE, reason, conditions, children
        ),
    )


def _verdict(node: PhysicalNode, consumer: str | None, version: str) -> tuple[Kind, str, tuple[str, ...]]:
    """Return the kind of a node, the reason why Spark runs it (or ""), and the conditions of its support."""
    if node.name.startswith(("Execute ", "WriteFiles")):
        return Kind.OTHER, "Spark writes results", ()
    cls, kind = operator(node.name)
    if (format_ := unread_format(node.name)) is not None:
        return kind, f"files of the format {format_} are not supported", ()
    row = _plan_rows().get(cls)
    if row is None:
        return kind, f"the engine has no operator for {node.name}", ()
    if row.level is Level.NONE:
        return kind, row.note, ()
    conditions = (row.note,) if row.level is Level.PARTIAL and not _is_settled(node, cls) else ()
    if kind is Kind.PYTHON:  # its string names the user's functions, which are not in the support table
        return kind, "", conditions
    if cls == "DataSourceV2ScanRelation" and "groupedBy=" not in node.text:
        return kind, "data sources of version 2 other than Iceberg are not supported", ()
    if _is_partial_sort(node):
        return kind, _sort_reason(consumer), conditions
    support = call_support(_expressions(node, kind), version)
    if node.is_cut_off:
        conditions = (*conditions, "the log has only the first of its expressions")
    return kind, "; ".join(support.reasons), (*conditions, *support.conditions)


def _is_settled(node: PhysicalNode, cls: str) -> bool:
    """Return whether the plan string shows that the support table's condition holds, or this module checks it."""
    return cls in ("LogicalRelation", "Sort") or (cls == "Join" and "LeftSingle" not in node.text)


def _expressions(node: PhysicalNode, kind: Kind) -> str:
    """Return the string of a node's expressions. A scan's data filters also appear in the filter above it."""
    return node.metadata.get(_PARTITION_FILTERS, "") if kind is Kind.SCAN else node.arguments


def _is_partial_sort(node: PhysicalNode) -> bool:
    return node.name == "Sort" and node.text.rstrip().endswith("], false, 0")


def _sort_reason(consumer: str | None) -> str:
    """Return why Spark sorts each partition; "" if the sort only serves an operator that does not need it in the engine."""
    if consumer in _SORTED_INPUT:
        return ""
    return (
        "sorting each partition is not supported"
        if consumer is None
        else f"Spark sorts the input of {consumer}"
    )


def _without_idle_parts(top: JudgedNode, is_root: bool) -> JudgedNode:
    """Assign engine parts without an expensive operator to Spark, unless such a part is the whole query.

    A part is a connected set of engine nodes. Moving rows into the engine and out again costs more than a part of scans,
    filters and projections saves, so the planner does not accelerate such parts.
    """
    part = list(_part(top)) if top.runs is RunsOn.ENGINE else []
    is_idle = bool(part) and not any(node.kind in STEPS for node in part)
    is_whole = is_root and all(node.runs is RunsOn.ENGINE for node in top.walk())
    if is_idle and not is_whole:
        return _assigned_to_spark(top)
    return replace(top, children=tuple(_below(child, top.runs) for child in top.children))


def _below(node: JudgedNode, parent: RunsOn) -> JudgedNode:
    """Process a child, which belongs to its parent's part or is the top of another part."""
    if parent is RunsOn.ENGINE and node.runs is RunsOn.ENGINE:
        return replace(node, children=tuple(_below(child, node.runs) for child in node.children))
    return _without_idle_parts(node, is_root=False)


def _assigned_to_spark(node: JudgedNode) -> JudgedNode:
    """Assign the nodes of an engine part to Spark; parts below it are decided separately."""
    if node.runs is RunsOn.SPARK:
        return _without_idle_parts(node, is_root=False)
    children = tuple(map(_assigned_to_spark, node.children))
    return replace(node, runs=RunsOn.SPARK, reason=NO_EXPENSIVE_OPERATOR, children=children)


def _part(node: JudgedNode) -> Iterator[JudgedNode]:
    """Yield the engine nodes that are connected to this one from above, starting with itself."""
    yield node
    for child in node.children:
        if child.runs is RunsOn.ENGINE:
            yield from _part(child)


@cache
def _plan_rows() -> Mapping[str, Row]:
    return {row.cls: row for row in support_table() if row.kind == "plan"}
