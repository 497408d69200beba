"""Expressions whose answers are not the same in all supported releases of Spark; the engine gives those of 4.3."""

from __future__ import annotations

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.tree import CatalystNode

_CHANGED_IN_4_3 = {
    "Corr": "gives NaN, or divides by zero, for a column of one value",
    "Slice": "gives no element where start and length together pass 2147483647",
}


def check_version(node: CatalystNode, version: str) -> None:
    """Raise Unsupported for a plan node with an expression that Spark of this version, like ``4.2.1``, answers otherwise."""
    if tuple(map(int, version.split(".")[:2])) >= (4, 3):
        return
    for top in node.expressions():
        for part in top.walk_all():
            if part.cls in _CHANGED_IN_4_3:
                raise Unsupported(
                    f"Spark {version}, unlike 4.3, {_CHANGED_IN_4_3[part.cls]}, so {part.cls} stays with it"
                )
