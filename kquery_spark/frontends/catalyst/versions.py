"""Expressions that answer otherwise in other releases of Spark, or under a setting; the engine gives those of 4.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal
from kquery_spark.functions.aggregate_registry import AggregateFunction, aggregate_functions
from kquery_spark.functions.registry import COLUMN, Function, VersionChange, functions
from kquery_spark.sources.text_format import EXCEPTION, TIME_PARSER
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session_settings import SessionSettings
from kquery_spark.spark_bridge.versions import minor_version

# Those that parse, or print, times by a pattern.
_PARSING = ("GetTimestamp", "UnixTimestamp", "ToUnixTimestamp")
_PRINTING = ("DateFormatClass", "FromUnixTime")


@dataclass(frozen=True)
class ChangedCall:
    """What a release answers differently for some arguments of a function only, and why such calls stay with it."""

    change: VersionChange
    reason: str

    def concerns(self, args: Sequence[Expr]) -> bool:
        """Whether a call with these arguments is one of those."""
        if self.change.concerns is None:
            return True
        values = [a.value if isinstance(a, Literal) else COLUMN for a in args]
        return self.change.concerns([a.dtype for a in args], values)


@cache
def _changes(version: str) -> Sequence[tuple[Function | AggregateFunction, VersionChange, str]]:
    """The changes since a version, each with the beginning of the reason why it matters."""
    release = minor_version(version)
    assert release is not None  # others have no session
    changes: list[tuple[Function | AggregateFunction, VersionChange, str]] = []
    entries: list[Function | AggregateFunction] = [*functions().values(), *aggregate_functions().values()]
    for entry in entries:
        for change in entry.changes:
            if release < change.since:
                since = ".".join(map(str, change.since))
                changes.append((entry, change, f"Spark {version}, unlike {since}, {change.how}"))
    return changes


def changed_calls(version: str) -> Mapping[str, tuple[ChangedCall, ...]]:
    """Of Spark of this version: the functions, by the engine's names, of which some calls stay with it."""
    calls: dict[str, tuple[ChangedCall, ...]] = {}
    for entry, change, reason in _changes(version):
        if change.concerns is not None:
            calls[entry.name] = (*calls.get(entry.name, ()), ChangedCall(change, reason))
    return calls


def answered_otherwise(settings: SessionSettings) -> Mapping[str, str]:
    """The expression classes that stay with a Spark of this version and these settings, each with the reason."""
    reasons: dict[str, str] = {}
    for entry, change, reason in _changes(settings.version):
        if change.concerns is None:
            reasons |= {cls: f"{reason}, so {cls} stays with it" for cls in entry.catalyst}
    policy = settings.unexpected(TIME_PARSER).get(TIME_PARSER)
    if policy is not None:
        classes = _PARSING if policy.upper() == EXCEPTION else (*_PARSING, *_PRINTING)
        reasons |= dict.fromkeys(
            classes, f"patterns of times stay with Spark while {TIME_PARSER} is {policy}"
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
