"""Divides the task time of a query among the nodes of its plan.

The plan is cut at its exchanges into fragments. A stage ran a fragment if its tasks updated a metric of the fragment. The
log does not say how a stage's time divides among its nodes, so the weights of ``factors`` decide. Example: a stage with 14
task seconds ran a scan (weight 3) and an aggregate (weight 4), which get 6 and 8 seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kquery_spark.qualify.application import StageWork
from kquery_spark.qualify.factors import FACTORS
from kquery_spark.qualify.judgment import JudgedNode
from kquery_spark.qualify.plan import PhysicalNode


def task_seconds(
    plan: PhysicalNode, judged: Sequence[JudgedNode], stages: Mapping[int, StageWork]
) -> Mapping[int, float]:
    """Return the task seconds by the ``id`` of each judged node's plan node.

    The time of stages that match no fragment is divided among all fragments.
    """
    nodes = {id(node.node): node for top in judged for node in top.walk()}
    fragments = [fragment for fragment in _fragments(plan) if any(id(node) in nodes for node in fragment)]
    metrics = [_metrics(fragment) for fragment in fragments]
    seconds: dict[int, float] = defaultdict(float)
    for stage in stages.values():
        executed = [
            f for f, updated in zip(fragments, metrics, strict=True) if updated & stage.accumulators
        ] or fragments
        shares = {
            id(node): FACTORS[nodes[id(node)].kind].weight
            for fragment in executed
            for node in fragment
            if id(node) in nodes
        }
        total_weight = sum(shares.values())
        for key, weight in shares.items():
            seconds[key] += stage.run_seconds * weight / total_weight
    return seconds


def _fragments(plan: PhysicalNode) -> Iterator[list[PhysicalNode]]:
    """Cut the plan at its exchanges. An exchange belongs to the fragment below it, whose tasks write to it."""
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
    """Return the ids of the accumulators that only this fragment's tasks update.

    Metrics of exchanges are left out, because the tasks of the next stage, which read the exchange, update some of them.
    """
    return {number for node in fragment if not node.is_exchange for number in node.metrics.values()}
