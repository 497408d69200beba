"""Expressions whose answers are not the same in all supported releases of Spark; the engine gives those of 4.3."""

from __future__ import annotations

from collections.abc import Mapping

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.tree import CatalystNode

_CHANGED_IN_4_3 = {
    "Corr": "gives NaN, or divides by zero, for a column of one value",
    "Slice": "gives no element where start and length together pass 2147483647",
}


def answered_otherwise(version: str) -> Mapping[str, str]:
    """Of Spark of this version, like ``4.2.1``: the expression classes that stay with it, each with the reason."""
    if tuple(map(int, version.split(".")[:2])) >= (4, 3):
        return {}
    return {
        cls: f"Spark {version}, unlike 4.3, {how}, so {cls} stays with it"
        for cls, how in _CHANGED_IN_4_3.items()
    }


def check_expressions(node: CatalystNode, otherwise: Mapping[str, str]) -> None:
    """Raise Unsupported for a plan node with an expression of one of these classes."""
    if not otherwise:
        return
    for top in node.expressions():
        for part in top.walk_all():
            if part.cls in otherwise:
                raise Unsupported(otherwise[part.cls])
