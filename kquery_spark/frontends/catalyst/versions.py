"""Expressions that answer otherwise in other releases of Spark, or under a setting; the engine gives those of 4.3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal
from kquery_spark.functions.aggregate_registry import AggregateFunction, aggregate_functions
from kquery_spark.functions.registry import COLUMN, Function, VersionChange, functions
from kquery_spark.sources.text_format import TIME_PARSER
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session_settings import SessionSettings

# Those that parse or print times by a pattern.
_PATTERNED = ("DateFormatClass", "FromUnixTime", "GetTimestamp", "UnixTimestamp", "ToUnixTimestamp")


@dataclass(frozen=True)
class ChangedCall:
    """A function that releases answer differently for some arguments only, and why its calls stay with them."""

    change: VersionChange
    reason: str

    def concerns(self, args: Sequence[Expr]) -> bool:
        """Whether a call with these arguments is one of those."""
        if self.change.concerns is None:
            return True
        values = [a.value if isinstance(a, Literal) else COLUMN for a in args]
        return self.change.concerns([a.dtype for a in args], values)


def _is_current(version: str) -> bool:
    return tuple(map(int, version.split(".")[:2])) >= (4, 3)


def changed_calls(version: str) -> Mapping[str, ChangedCall]:
    """Of Spark of this version: the functions, by the engine's names, of which some calls stay with it."""
    if _is_current(version):
        return {}
    return {
        entry.name: ChangedCall(entry.changed, f"Spark {version}, unlike 4.3, {entry.changed.how}")
        for entry in _entries()
        if entry.changed is not None and entry.changed.concerns is not None
    }


def _entries() -> Iterator[Function | AggregateFunction]:
    yield from functions().values()
    yield from aggregate_functions().values()


def answered_otherwise(settings: SessionSettings) -> Mapping[str, str]:
    """The expression classes that stay with a Spark of this version and these settings, each with the reason."""
    reasons: dict[str, str] = {}
    version = settings.version
    if not _is_current(version):
        for entry in _entries():
            if entry.changed is not None and entry.changed.concerns is None:
                for cls in entry.catalyst:
                    reasons[cls] = f"Spark {version}, unlike 4.3, {entry.changed.how}, so {cls} stays with it"
    policy = settings.unexpected(TIME_PARSER).get(TIME_PARSER)
    if policy is not None:
        reasons |= dict.fromkeys(
            _PATTERNED, f"patterns of times stay with Spark while {TIME_PARSER} is {policy}"
        )
    return reasons


def check_expressions(node: CatalystNode, otherwise: Mapping[str, str]) -> None:
    """Raise Unsupported for a plan node with an expression of one of these classes."""
    if not otherwise:
        return
    for top in node.expressions():
        for part in top.walk_all():
            if part.cls in otherwise:
                raise Unsupported(otherwise[part.cls])
