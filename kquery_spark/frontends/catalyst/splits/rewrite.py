"""Rewrites Spark's plan until no node mixes expressions of the engine with expressions that fall back to Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kquery_spark.errors import KQueryError, Unsupported
from kquery_spark.frontends.catalyst.splits import (  # noqa: F401  these modules fill the table
    aggregates,
    filters,
    projections,
)
from kquery_spark.frontends.catalyst.splits.expressible import Expressible
from kquery_spark.frontends.catalyst.splits.split import SPLITS
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.plan_builder import PlanBuilder
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session.settings import SessionSettings

# Each round splits a node at most once. An Aggregate has two splits (its results, then its arguments), and the Projects
# that these create have one more.
_MAX_ROUNDS = 4


@dataclass(frozen=True)
class SplitPlan:
    """A plan as a JVM object, with its facts and its tree."""

    plan: Any
    facts: Facts
    root: CatalystNode


def is_splittable(node: CatalystNode) -> bool:
    """Return whether a node that falls back to Spark may do so because of one of its expressions."""
    return node.cls in SPLITS.entries


def split_plan(plan: SplitPlan, jvm: Jvm, settings: SessionSettings) -> SplitPlan:
    """Split all nodes of a plan that can be split; returns the plan itself if there are none.

    Raises Unsupported if a node of the plan cannot be found in the JVM, or if a new node cannot be built.
    """
    for _ in range(_MAX_ROUNDS):
        split = _rewritten(plan, jvm, settings)
        if split is plan:
            break
        plan = split
    return plan


def _rewritten(plan: SplitPlan, jvm: Jvm, settings: SessionSettings) -> SplitPlan:
    try:
        new = _Round(jvm, plan.facts, settings).rewritten(plan.root)
        if new is None:
            return plan
        facts = Facts(jvm, new)
        return SplitPlan(new, facts, facts.parse())
    except KQueryError:
        raise
    except Exception as error:  # an error of Spark or py4j must not make the query fail because of a split
        raise Unsupported("this Spark does not build the nodes that a plan is split into") from error


class _Round:
    """One pass over a plan from the leaves up, which splits each node at most once."""

    def __init__(self, jvm: Jvm, facts: Facts, settings: SessionSettings) -> None:
        self._expressible = Expressible(facts, settings)
        self._builder = PlanBuilder(jvm, facts)

    def rewritten(self, node: CatalystNode) -> Any | None:
        """The JVM node that replaces a node; None if neither the node nor any node below it is split."""
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
            replacement = split(node, children, self._expressible, self._builder)
            if replacement is not None:
                return replacement
        return self._builder.node(node, children) if changed else None
