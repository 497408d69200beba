"""The lowering of each class of logical node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from kquery_spark.logical import LogicalPlan
from kquery_spark.planner.distribution import Placed

if TYPE_CHECKING:
    from kquery_spark.planner.planner import Planner

Node = TypeVar("Node", bound=LogicalPlan)

_LOWERINGS: dict[type[LogicalPlan], Callable[[Planner, Any], Placed]] = {}


def lowers(
    cls: type[Node],
) -> Callable[[Callable[[Planner, Node], Placed]], Callable[[Planner, Node], Placed]]:
    """Register the function that gives the operators of a node of this class, and of everything below it."""

    def register(lower: Callable[[Planner, Node], Placed]) -> Callable[[Planner, Node], Placed]:
        _LOWERINGS[cls] = lower
        return lower

    return register


def lowering_of(plan: LogicalPlan) -> Callable[[Planner, Any], Placed] | None:
    """The lowering of a node's class; None if the engine has no operator for it."""
    return _LOWERINGS.get(type(plan))
