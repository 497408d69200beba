"""The registry of lowerings by class of logical node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from kquery_spark.logical import LogicalPlan
from kquery_spark.planner.distribution import DistributedPlan

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner

Node = TypeVar("Node", bound=LogicalPlan)

_LOWERINGS: dict[type[LogicalPlan], Callable[[Planner, Any], DistributedPlan]] = {}


def lowers(
    cls: type[Node],
) -> Callable[[Callable[[Planner, Node], DistributedPlan]], Callable[[Planner, Node], DistributedPlan]]:
    """Register a function that lowers nodes of this class, and everything below them."""

    def register(
        lower: Callable[[Planner, Node], DistributedPlan],
    ) -> Callable[[Planner, Node], DistributedPlan]:
        _LOWERINGS[cls] = lower
        return lower

    return register


def lowering_of(plan: LogicalPlan) -> Callable[[Planner, Any], DistributedPlan] | None:
    """Return the lowering of the node's class; None if the engine has no operator for it."""
    return _LOWERINGS.get(type(plan))
