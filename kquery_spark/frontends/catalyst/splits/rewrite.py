"""Rewrites Spark's plan until no node has both expressions of the engine and such as stay with Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# the modules that fill the table
from kquery_spark.frontends.catalyst.splits import aggregates, filters, projections
from kquery_spark.frontends.catalyst.splits.expressible import Expressible
from kquery_spark.frontends.catalyst.splits.split import SPLITS
from kquery_spark.spark_bridge.jvm import Jvm
from kquery_spark.spark_bridge.plan_builder import PlanBuilder
from kquery_spark.spark_bridge.plan_facts import FactFetcher
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session_settings import SessionSettings

__all__ = ["aggregates", "filters", "projections"]

_MAX_ROUNDS = 4  # an Aggregate has three splits, and each makes nodes that have one of their own at most


@dataclass(frozen=True)
class SplitPlan:
    """A plan as JVM object, with its facts and its tree."""

    plan: Any
    facts: FactFetcher
    root: CatalystNode


def is_splittable(node: CatalystNode) -> bool:
    """Whether a node that stays with Spark may do so for one of its expressions."""
    return node.cls in SPLITS.entries


def split_plan(plan: Any, facts: FactFetcher, jvm: Jvm, settings: SessionSettings) -> SplitPlan | None:
    """The plan with all nodes split that can be; None if there is no such node.

    Unsupported if a part of the plan cannot be looked up.
    """
    split: SplitPlan | None = None
    for _ in range(_MAX_ROUNDS):
        round_ = _Round(jvm, facts, settings)
        plan = round_.rewritten(facts.parse())
        if plan is None:
            break
        facts = FactFetcher(jvm, plan)
        split = SplitPlan(plan, facts, facts.parse())
    return split


class _Round:
    """One pass over a plan, from its leaves up, that splits each node once at most."""

    def __init__(self, jvm: Jvm, facts: FactFetcher, settings: SessionSettings) -> None:
        self._expressible = Expressible(facts, settings)
        self._builder = PlanBuilder(jvm, facts)

    def rewritten(self, node: CatalystNode) -> Any | None:
        """The JVM node instead of a node; None if neither it nor what is below is split."""
        below = [self.rewritten(child) for child in node.children]
        changed = any(child is not None for child in below)
        splits = SPLITS.entries.get(node.cls, ())
        if not changed and not splits:
            return None
        children = [
            self._builder.node(child) if new is None else new
            for child, new in zip(node.children, below, strict=True)
        ]
        for split in splits:
            found = split(node, children, self._expressible, self._builder)
            if found is not None:
                return found
        return self._builder.node(node, children) if changed else None
