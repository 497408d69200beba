"""Expressions that answer otherwise in other releases of Spark, or under a setting; the engine gives those of 4.3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal
from kquery_spark.kernels.ordered_bytes import has_floats
from kquery_spark.sources.text_format import TIME_PARSER
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session_settings import SessionSettings

_CHANGED_IN_4_3 = {
    "Corr": "gives NaN, or divides by zero, for a column of one value",
    "Slice": "gives no element where start and length together pass 2147483647",
}


# Those that parse or print times by a pattern.
_PATTERNED = ("DateFormatClass", "FromUnixTime", "GetTimestamp", "UnixTimestamp", "ToUnixTimestamp")


@dataclass(frozen=True)
class ChangedCall:
    """A function that releases answer differently for some arguments only: for which ones, and what they do with them."""

    concerns: Callable[[Sequence[Expr]], bool]
    reason: str


def _may_put_in_nul(args: Sequence[Expr]) -> bool:
    replacements = args[2]
    return not isinstance(replacements, Literal) or "\0" in (replacements.value or "")


def _of_floats(args: Sequence[Expr]) -> bool:
    return has_floats(args[0].dtype)


_CALLS_CHANGED_IN_4_3 = {
    "translate": ChangedCall(
        _may_put_in_nul, "drops the characters that translate is to replace by the character NUL"
    ),
    "collect_set": ChangedCall(_of_floats, "keeps the sign of zeros in collect_set"),
}


def _is_current(version: str) -> bool:
    return tuple(map(int, version.split(".")[:2])) >= (4, 3)


def changed_calls(version: str) -> Mapping[str, ChangedCall]:
    """Of Spark of this version: the functions, by the engine's names, of which some calls stay with it."""
    if _is_current(version):
        return {}
    return {
        name: replace(change, reason=f"Spark {version}, unlike 4.3, {change.reason}")
        for name, change in _CALLS_CHANGED_IN_4_3.items()
    }


def answered_otherwise(settings: SessionSettings) -> Mapping[str, str]:
    """The expression classes that stay with a Spark of this version and these settings, each with the reason."""
    found: dict[str, str] = {}
    version = settings.version
    if not _is_current(version):
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
