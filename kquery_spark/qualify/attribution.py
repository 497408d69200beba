"""Divides the task time of a query among the nodes of its plan.

A stage runs the nodes between two exchanges: those with metrics that its tasks updated. The log does not say how its time
divides among them, so the weights of the factors decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kquery_spark.qualify.application import StageWork
from kquery_spark.qualify.factors import FACTORS
from kquery_spark.qualify.judgement import JudgedNode
from kquery_spark.qualify.plan import PhysicalNode


def task_seconds(
    plan: PhysicalNode, judged: Sequence[JudgedNode], stages: Mapping[int, StageWork]
) -> Mapping[int, float]:
    """Task seconds by the ``id`` of each judged node; the time of stages that match no node is divided among all nodes."""
    nodes = {id(node.node): node for top in judged for node in top.walk()}
    fragments = [fragment for fragment in _fragments(plan) if any(id(node) in nodes for node in fragment)]
    metrics = [_metrics(fragment) for fragment in fragments]
    seconds: dict[int, float] = defaultdict(float)
    for stage in stages.values():
        ran = [
            f for f, updated in zip(fragments, metrics, strict=True) if updated & stage.accumulators
        ] or fragments
        shares = {
            id(node): FACTORS[nodes[id(node)].kind].weight
            for fragment in ran
            for node in fragment
            if id(node) in nodes
        }
        total_weight = sum(shares.values())
        for key, weight in shares.items():
            seconds[key] += stage.run_seconds * weight / total_weight
    return seconds


def _fragments(plan: PhysicalNode) -> Iterator[list[PhysicalNode]]:
    """The plan cut at its exchanges; each exchange belongs to the nodes below, which write to it."""
    tops = [plan]
    while tops:
        fragment: list[PhysicalNode] = []
        stack = [tops.pop()]
        below: list[PhysicalNode] = []
        while stack:
            node = stack.pop()
            fragment.append(node)
            for child in node.children:
                (below if child.is_exchange or child.name == "Subquery" else stack).append(child)
        yield fragment
        tops += reversed(below)


def _metrics(fragment: Sequence[PhysicalNode]) -> set[int]:
    """Accumulators that the fragment's tasks update, without exchanges: the next stage updates some of theirs."""
    return {number for node in fragment if not node.is_exchange for number in node.metrics.values()}
