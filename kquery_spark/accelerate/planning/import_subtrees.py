"""The import step: finds the maximal subtrees of Spark's plan that the importer translates.

Below a node that falls back to Spark, the search continues. There, a subtree counts only if it does more than scan, filter,
and project: otherwise, moving its rows between Spark and the engine costs more than it saves. The search ends at a node
whose answer depends on Spark's partitions, because the engine would change these. Example: in ``Sort(f(Aggregate(Scan)))``,
where the engine does not support ``f``, the search finds ``Aggregate(Scan)``, and ``f`` and the sort run in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.importer import (
    Imported,
    Importer,
    does_more_than_scan,
    may_do_more_than_scan,
)
from kquery_spark.frontends.catalyst.partition_dependence import partition_dependence
from kquery_spark.frontends.catalyst.plans.context import Declined
from kquery_spark.frontends.catalyst.spark_query import SparkQuery
from kquery_spark.frontends.catalyst.splits import SplitPlan
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

Position = tuple[int, ...]
"""The path to a node in Spark's plan: child indexes from the root; () is the root."""

DeclinedNode = tuple[CatalystNode, str]
"""A node that falls back to Spark, and why."""


@dataclass(frozen=True)
class ImportedSubtree:
    """A subtree of Spark's plan and its translation.

    below: the results of the search below the nodes whose rows Spark hands over to the subtree.
    """

    position: Position
    node: CatalystNode
    imported: Imported
    below: tuple[ImportedSubtree | DeclinedNode, ...]


@dataclass(frozen=True)
class ImportedPlan:
    """Spark's plan, as it is or with nodes split, and the results of the search in it, in the order of the search."""

    tree: SplitPlan
    importer: Importer
    found: tuple[ImportedSubtree | DeclinedNode, ...]

    def walk(self) -> Iterator[ImportedSubtree | DeclinedNode]:
        """Yield all results; each subtree is followed by the results below it."""
        stack = list(reversed(self.found))
        while stack:
            found = stack.pop()
            yield found
            if isinstance(found, ImportedSubtree):
                stack += reversed(found.below)

    @property
    def subtrees(self) -> list[ImportedSubtree]:
        """All subtrees."""
        return [found for found in self.walk() if isinstance(found, ImportedSubtree)]

    @property
    def declined(self) -> list[DeclinedNode]:
        """All nodes that fall back to Spark."""
        return [found for found in self.walk() if not isinstance(found, ImportedSubtree)]


def import_plan(query: SparkQuery, tree: SplitPlan) -> ImportedPlan:
    """Import the query's tree, or the same tree with nodes split; no subtrees if Spark has to run the whole query."""
    importer = query.importer(tree)
    whole = importer.declined_query(tree.root)
    if whole is not None:
        return ImportedPlan(tree, importer, (whole,))
    try:
        return ImportedPlan(tree, importer, _search(importer, [(tree.root, ())]))
    except Declined as declined:
        return ImportedPlan(tree, importer, ((declined.node, declined.reason),))


def import_children(
    plan: ImportedPlan, subtree: ImportedSubtree
) -> tuple[ImportedSubtree | DeclinedNode, ...]:
    """Import the subtrees below the root of a subtree that itself falls back to Spark.

    Raises Declined if Spark has to run the whole query.
    """
    return _search(plan.importer, _children(subtree.node, subtree.position)[::-1])


def _search(
    importer: Importer, stack: list[tuple[CatalystNode, Position]]
) -> tuple[ImportedSubtree | DeclinedNode, ...]:
    """Search the plans of the given nodes, the last node first. Raises Declined for a query that Spark has to run."""
    found: list[ImportedSubtree | DeclinedNode] = []
    while stack:
        node, position = stack.pop()
        is_root = position == ()
        if not is_root and not may_do_more_than_scan(node):
            continue
        dependence = partition_dependence(node)
        if dependence is not None:
            found.append((node, dependence))
            continue
        try:
            imported = importer.import_plan(node)
        except Unsupported as declined:
            if isinstance(declined, Declined) and declined.whole_query:
                raise
            found.append((declined.node if isinstance(declined, Declined) else node, declined.reason))
            stack += _children(node, position)[::-1]
            continue
        if is_root or does_more_than_scan(imported.plan):
            found.append(
                ImportedSubtree(
                    position, node, imported, _below_handovers(importer, node, position, imported)
                )
            )
    return tuple(found)


def _below_handovers(
    importer: Importer, node: CatalystNode, position: Position, imported: Imported
) -> tuple[ImportedSubtree | DeclinedNode, ...]:
    """Search below the nodes whose rows Spark hands over to an imported subtree, and say why these nodes fall back."""
    below: list[tuple[CatalystNode, Position]] = []
    declined: list[DeclinedNode] = list(imported.declined)
    for handover in imported.inputs:
        dependence = partition_dependence(handover.node)
        if dependence is not None:
            declined.append((handover.node, dependence))
            continue
        where = position_below(node, position, handover.node)
        if where is not None:
            below += _children(handover.node, where)
    return (*declined, *_search(importer, below))


def _children(node: CatalystNode, position: Position) -> list[tuple[CatalystNode, Position]]:
    return [(child, (*position, i)) for i, child in enumerate(node.children)]


def position_below(node: CatalystNode, position: Position, target: CatalystNode) -> Position | None:
    """Return the position of a node below ``node``; None for a node in the plan of a subquery."""
    return next((p for n, p in _positions(node, position) if n is target), None)


def _positions(node: CatalystNode, position: Position) -> Iterator[tuple[CatalystNode, Position]]:
    yield node, position
    for i, child in enumerate(node.children):
        yield from _positions(child, (*position, i))
