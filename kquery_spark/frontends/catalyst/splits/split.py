"""The table of splits: how a plan node with an expression that falls back to Spark is split in two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kquery_spark.frontends.catalyst.splits.expressible import Expressible
from kquery_spark.spark_bridge.plan.plan_builder import PlanBuilder
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

Split = Callable[[CatalystNode, Sequence[Any], Expressible, PlanBuilder], Any]
"""Takes a node and its rewritten children, and returns the JVM node that replaces it; None if it is not split."""


class Splits:
    """Splits by the class of node, in the order they are tried; filled by the decorator below when the modules load."""

    def __init__(self) -> None:
        self.entries: dict[str, list[Split]] = {}

    def handles(self, cls: str) -> Callable[[Split], Split]:
        """Register a split for a class of nodes."""

        def add(split: Split) -> Split:
            self.entries.setdefault(cls, []).append(split)
            return split

        return add


SPLITS = Splits()
