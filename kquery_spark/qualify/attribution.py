"""Shares the time of a query's tasks out among the nodes of its plan.

A stage runs the nodes between two exchanges: those with metrics that its tasks updated. How its time divides among them
is not in the log, so the weights of the factors decide it.
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
    """Seconds of tasks by the ``id`` of the nodes that work; those of stages that match no node are everybody's."""
    nodes = {id(node.node): node for top in judged for node in top.walk()}
    fragments = [fragment for fragment in _fragments(plan) if any(id(node) in nodes for node in fragment)]
    seconds: dict[int, float] = defaultdict(float)
    for stage in stages.values():
        ran = [fragment for fragment in fragments if _metrics(fragment) & stage.accumulators] or fragments
        shares = {
            id(node): FACTORS[nodes[id(node)].kind].weight
            for fragment in ran
            for node in fragment
            if id(node) in nodes
        }
        for key, weight in shares.items():
            seconds[key] += stage.run_seconds * weight / sum(shares.values())
    return seconds


def _fragments(plan: PhysicalNode) -> Iterator[list[PhysicalNode]]:
    """The plan cut at its exchanges, each of which belongs to the nodes below that write to it."""
    fragment: list[PhysicalNode] = []
    stack: list[PhysicalNode] = [plan]
    below: list[PhysicalNode] = []
    while stack:
        node = stack.pop()
        fragment.append(node)
        for child in node.children:
            (below if child.is_exchange or child.name == "Subquery" else stack).append(child)
    yield fragment
    for exchange in below:
        yield from _fragments(exchange)


def _metrics(fragment: Sequence[PhysicalNode]) -> set[int]:
    """Accumulators that its tasks update; an exchange has some that the tasks of the next stage do."""
    return {number for node in fragment if not node.is_exchange for number in node.metrics.values()}
