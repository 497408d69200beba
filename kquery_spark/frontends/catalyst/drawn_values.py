"""Values of chance that a query reads at several places, where they have to agree.

Spark computes a common table expression with such values once, however often the query reads it: its plan has a copy at
each place, and Spark finds in the end that one exchange serves all of them. Whatever the engine runs below or above makes
the copies differ, so that each would draw values of its own.
"""

from __future__ import annotations

from kquery_spark.frontends.catalyst.partition_dependence import DRAWN_BY_PARTITION
from kquery_spark.spark_bridge.plan_tree import CatalystNode

Draw = tuple[object, ...]
"""What an expression that is not deterministic and its copies have in common."""


def drawn_twice(root: CatalystNode) -> tuple[CatalystNode, str] | None:
    """A plan node whose values may have to agree with another's, and why the query stays with Spark; None without one."""
    seen: set[Draw] = set()
    for node in root.walk_all():
        if not node.is_plan:
            continue
        drawn = {_draw(part): part for top in node.expressions() for part in top.walk() if _is_drawn(part)}
        again = next((part for draw, part in drawn.items() if draw in seen), None)
        if again is not None:
            name = DRAWN_BY_PARTITION.get(again.cls) or again.fields.get("name") or again.cls
            return (
                node,
                f"{name} is not deterministic, and the query has it at two places that Spark may compute once.",
            )
        seen.update(drawn)
    return None


def _is_drawn(part: CatalystNode) -> bool:
    """Whether an expression may have another value each time that it is computed."""
    return part.cls in DRAWN_BY_PARTITION or part.fields.get("udfDeterministic") is False


def _draw(part: CatalystNode) -> Draw:
    """Copies have the same id, if they are functions of the user's, or the same seed."""
    seeds = [str(below) for below in part.walk() if below.cls == "Literal"]
    return part.cls, part.fields.get("resultId"), part.fields.get("randomSeed"), *seeds
