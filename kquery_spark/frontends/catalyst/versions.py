"""Expressions that answer otherwise in other releases of Spark, or under a setting; the engine gives those of 4.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal
from kquery_spark.functions.aggregate_registry import AggregateFunction, aggregate_functions
from kquery_spark.functions.casts import CAST_CHANGES
from kquery_spark.functions.registry import COLUMN, Function, VersionChange, for_catalyst, functions
from kquery_spark.sources.text_format import EXCEPTION, TIME_PARSER
from kquery_spark.spark_bridge.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session_settings import SessionSettings
from kquery_spark.spark_bridge.versions import minor_version
from kquery_spark.types import names as t

# Those that parse, or print, times by a pattern.
_PARSING = ("GetTimestamp", "UnixTimestamp", "ToUnixTimestamp")
_PRINTING = ("DateFormatClass", "FromUnixTime")
CAST = "cast"
"""What stands for casts among the names of functions."""


@dataclass(frozen=True)
class ChangedCall:
    """What a release answers differently for some arguments of a function only, and why such calls stay with it."""

    change: VersionChange
    reason: str
    raising_too: bool = True
    """False for calls that only matter where what they cannot parse is NULL and no error, for an error is asked of Spark."""

    def concerns(self, args: Sequence[Expr], raising: bool) -> bool:
        """Whether a call with these arguments, which raises an error or gives NULL, is one of those."""
        if raising and not self.raising_too:
            return False
        if self.change.concerns is None:
            return True
        values = [a.value if isinstance(a, Literal) else COLUMN for a in args]
        return self.change.concerns([a.dtype for a in args], values)


@dataclass(frozen=True)
class _Change:
    """A change of a function since a release. function: the engine's name, or CAST. classes: of Catalyst."""

    function: str
    classes: tuple[str, ...]
    change: VersionChange
    reason: str


@cache
def _changes(version: str) -> Sequence[_Change]:
    """The changes since a version, each with the beginning of the reason why it matters."""
    release = minor_version(version)
    assert release is not None  # others have no session
    found = []
    entries: list[Function | AggregateFunction] = [*functions().values(), *aggregate_functions().values()]
    changes = [(entry.name, entry.catalyst, change) for entry in entries for change in entry.changes]
    for name, classes, change in [*changes, *((CAST, ("Cast",), change) for change in CAST_CHANGES)]:
        if release < change.since:
            since = ".".join(map(str, change.since))
            found.append(_Change(name, classes, change, f"Spark {version}, unlike {since}, {change.how}"))
    return found


def changed_calls(settings: SessionSettings) -> Mapping[str, tuple[ChangedCall, ...]]:
    """The functions, by the engine's names, of which some calls stay with a Spark of this version and these settings."""
    calls: dict[str, tuple[ChangedCall, ...]] = {}
    for one in _changes(settings.version):
        if one.change.concerns is not None:
            calls[one.function] = (*calls.get(one.function, ()), ChangedCall(one.change, one.reason))
    if _time_parser(settings) == EXCEPTION:
        reason = f"texts that may not match a pattern stay with Spark while {TIME_PARSER} is {EXCEPTION}"
        call = ChangedCall(VersionChange(reason, lambda types, _: types[0] == t.STRING), reason, False)
        for entry in filter(None, map(for_catalyst, _PARSING)):
            calls[entry.name] = (*calls.get(entry.name, ()), call)
    return calls


def _time_parser(settings: SessionSettings) -> str | None:
    """The value of the setting that the engine does not follow everywhere; None where it does."""
    policy = settings.unexpected(TIME_PARSER).get(TIME_PARSER)
    return None if policy is None else policy.upper()


def answered_otherwise(settings: SessionSettings) -> Mapping[str, str]:
    """The expression classes that stay with a Spark of this version and these settings, each with the reason."""
    reasons: dict[str, str] = {}
    for one in _changes(settings.version):
        if one.change.concerns is None:
            reasons |= {cls: f"{one.reason}, so {cls} stays with it" for cls in one.classes}
    policy = _time_parser(settings)
    if policy not in (None, EXCEPTION):
        reason = f"patterns of times stay with Spark while {TIME_PARSER} is {policy}"
        reasons |= dict.fromkeys((*_PARSING, *_PRINTING), reason)
    return reasons


def check_expressions(node: CatalystNode, otherwise: Mapping[str, str]) -> None:
    """Raise Unsupported for a plan node with an expression of one of these classes."""
    if not otherwise:
        return
    for top in node.expressions():
        for part in top.walk_all():
            if part.cls in otherwise:
                raise Unsupported(otherwise[part.cls])
