"""Finds the parts of Spark's plan that the engine can run, and why each other node falls back to Spark."""

from __future__ import annotations

from collections.abc import Iterator

from kquery_spark.accelerate.planning.part import Part, Position, plan_part
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.importer import Importer, does_work, may_work
from kquery_spark.frontends.catalyst.partition_dependence import partition_dependence
from kquery_spark.frontends.catalyst.plans.context import Declined
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

DeclinedNode = tuple[CatalystNode, str]
"""A node that falls back to Spark, and why."""


def find_parts(
    root: CatalystNode, importer: Importer, config: EngineConfig
) -> tuple[list[Part], list[DeclinedNode]]:
    """The maximal subtrees the engine can run, and why each node above or between them falls back to Spark.

    Below a node that stays, only a subtree that does more than pass rows on is worth its own way through the engine, and
    none where the node sees in which partitions its rows are. No parts where Spark has to run the whole query.
    """
    whole = importer.declined_query(root)
    if whole is not None:
        return [], [whole]
    parts: list[Part] = []
    reasons: list[DeclinedNode] = []
    stack: list[tuple[CatalystNode, Position]] = [(root, ())]
    while stack:
        node, at = stack.pop()
        if node is not root and not may_work(node):
            continue
        dependence = partition_dependence(node)
        if dependence is not None:
            reasons.append((node, dependence))
            continue
        try:
            imported = importer.import_plan(node)
            if node is not root and not does_work(imported.plan):
                continue
            part = plan_part(at, node, imported, config)
        except Unsupported as declined:
            at_fault = declined.node if isinstance(declined, Declined) else node
            if isinstance(declined, Declined) and declined.whole_query:
                return [], [(at_fault, declined.reason)]
            reasons.append((at_fault, declined.reason))
            stack += _children(node, at)[::-1]
            continue
        parts.append(part)
        below, dependent = _below_handovers(part)
        reasons += [*imported.declined, *dependent]
        stack += below
    return parts, reasons


def _children(node: CatalystNode, at: Position) -> list[tuple[CatalystNode, Position]]:
    return [(child, (*at, i)) for i, child in enumerate(node.children)]


def _below_handovers(
    part: Part,
) -> tuple[list[tuple[CatalystNode, Position]], list[DeclinedNode]]:
    """What to plan below the nodes whose rows Spark hands over to a part, and why other such plans fall back to Spark."""
    below: list[tuple[CatalystNode, Position]] = []
    reasons: list[DeclinedNode] = []
    for handover in part.imported.inputs:
        dependence = partition_dependence(handover.node)
        if dependence is not None:
            reasons.append((handover.node, dependence))
            continue
        where = position_below(part.node, part.position, handover.node)
        if where is not None:
            below += _children(handover.node, where)
    return below, reasons


def position_below(node: CatalystNode, at: Position, target: CatalystNode) -> Position | None:
    """Position of a node below ``node``; None for one in the plan of a subquery."""
    return next((p for n, p in _positions(node, at) if n is target), None)


def _positions(node: CatalystNode, at: Position) -> Iterator[tuple[CatalystNode, Position]]:
    yield node, at
    for i, child in enumerate(node.children):
        yield from _positions(child, (*at, i))
