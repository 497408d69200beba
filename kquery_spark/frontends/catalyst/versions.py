"""Expressions that answer otherwise in other releases of Spark, or under a setting; the engine gives those of 4.3."""

from __future__ import annotations

from collections.abc import Mapping

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.settings import TIME_PARSER, SessionSettings
from kquery_spark.frontends.catalyst.tree import CatalystNode

_CHANGED_IN_4_3 = {
    "Corr": "gives NaN, or divides by zero, for a column of one value",
    "Slice": "gives no element where start and length together pass 2147483647",
}


# Those that parse or print times by a pattern.
_PATTERNED = ("DateFormatClass", "FromUnixTime", "GetTimestamp", "UnixTimestamp", "ToUnixTimestamp")


def answered_otherwise(settings: SessionSettings) -> Mapping[str, str]:
    """The expression classes that stay with a Spark of this version and these settings, each with the reason."""
    found: dict[str, str] = {}
    version = settings.version
    if tuple(map(int, version.split(".")[:2])) < (4, 3):
        for cls, how in _CHANGED_IN_4_3.items():
            found[cls] = f"Spark {version}, unlike 4.3, {how}, so {cls} stays with it"
    policy = settings.unexpected(TIME_PARSER).get(TIME_PARSER)
    if policy is not None:
        found |= dict.fromkeys(
            _PATTERNED, f"patterns of times stay with Spark while {TIME_PARSER} is {policy}"
        )
    return found


def check_expressions(node: CatalystNode, otherwise: Mapping[str, str]) -> None:
    """Raise Unsupported for a plan node with an expression of one of these classes."""
    if not otherwise:
        return
    for top in node.expressions():
        for part in top.walk_all():
            if part.cls in otherwise:
                raise Unsupported(otherwise[part.cls])
