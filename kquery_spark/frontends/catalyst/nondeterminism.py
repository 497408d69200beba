"""Detects nondeterministic expressions that occur several times in a query.

Spark evaluates a common table expression with such an expression only once, however often the query reads it: the plan has a
copy at each place, and at the end of planning, Spark reuses one exchange for all of them. If the engine runs a part below or
above it, the copies differ, and each would be evaluated separately, with other values.
"""

from __future__ import annotations

from kquery_spark.frontends.catalyst.partition_dependence import NONDETERMINISTIC
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

Identity = tuple[object, ...]
"""A value that is the same for a nondeterministic expression and its copies."""


def repeated_nondeterminism(root: CatalystNode) -> tuple[CatalystNode, str] | None:
    """A plan node with a copy of another node's nondeterministic expression, and why the query falls back to Spark."""
    seen: set[Identity] = set()
    for node in root.walk_all():
        if not node.is_plan:
            continue
        found = {
            _identity(part): part
            for top in node.expressions()
            for part in top.walk()
            if _is_nondeterministic(part)
        }
        again = next((part for identity, part in found.items() if identity in seen), None)
        if again is not None:
            name = NONDETERMINISTIC.get(again.cls) or again.fields.get("name") or again.cls
            return (
                node,
                f"{name} is not deterministic, and the query has it at two places that Spark may compute once.",
            )
        seen.update(found)
    return None


def _is_nondeterministic(part: CatalystNode) -> bool:
    return part.cls in NONDETERMINISTIC or part.fields.get("udfDeterministic") is False


def _identity(part: CatalystNode) -> Identity:
    """The identity of an expression: the id of a user's function, otherwise the seed."""
    seeds = [str(below) for below in part.walk() if below.cls == "Literal"]
    return part.cls, part.fields.get("resultId"), part.fields.get("randomSeed"), *seeds
