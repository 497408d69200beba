"""Expressions whose results differ between releases of Spark, or under a setting; the engine returns those of 4.3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.expr import Expr, Literal
from kquery_spark.functions.aggregate_registry import AggregateFunction, aggregate_functions
from kquery_spark.functions.casts import CAST_CHANGES
from kquery_spark.functions.casts.nested import parts
from kquery_spark.functions.registry import COLUMN, Function, for_catalyst, functions
from kquery_spark.sources.csv.format import CSV
from kquery_spark.sources.json.format import JSON
from kquery_spark.sources.text_format import EXCEPTION, TIME_PARSER
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.session.settings import (
    FORMAT_PREFIXES,
    IGNORE_NULL_FIELDS_SETTING,
    PRECISION_LOSS_SETTING,
    SessionSettings,
)
from kquery_spark.spark_bridge.session.versions import patch_version
from kquery_spark.types import names as t

# Functions that parse or print times by a pattern.
_PARSING = ("GetTimestamp", "UnixTimestamp", "ToUnixTimestamp")
_PRINTING = ("DateFormatClass", "FromUnixTime")
# Functions whose results are decimals of a type that depends on a setting.
_DECIMAL_ARITHMETIC = ("Add", "Subtract", "Multiply", "Divide", "Remainder", "Pmod", "IntegralDivide")
# The file formats whose records can also be parsed from strings, and the classes that parse them.
_READERS = (
    (JSON.title, "from_json", "JsonToStructs", JSON.settings.prefixes),
    (CSV.title, "from_csv", "CsvToStructs", CSV.settings.prefixes),
)
CORRUPT_RECORD = "_corrupt_record"
"""The default name of the column for malformed records; with another name, JSON strings fall back to Spark."""
LOCAL_SETTINGS = (
    TIME_PARSER,
    PRECISION_LOSS_SETTING,
    IGNORE_NULL_FIELDS_SETTING,
    "spark.sql.files.",
    *FORMAT_PREFIXES,
)
"""Settings, or prefixes of settings, for which only file scans or some expressions fall back, not the whole query."""
CAST = "cast"
"""The name of casts among the names of functions."""


@dataclass(frozen=True)
class ChangedCall:
    """A function whose results differ in a release for some or all calls, and the reason why these fall back.

    function: the engine's name, or CAST. classes: the Catalyst classes. concerns: as in VersionChange.
    includes_raising_calls: False if only calls matter that return NULL for malformed input, because errors rerun on Spark.
    """

    function: str
    classes: tuple[str, ...]
    concerns: Callable[[Sequence[pa.DataType], Sequence[object]], bool] | None
    reason: str
    includes_raising_calls: bool = True

    def applies_to(self, args: Sequence[Expr], raises_errors: bool) -> bool:
        """Return whether a call with these arguments falls back. raises_errors: whether it raises errors instead of NULL."""
        if raises_errors and not self.includes_raising_calls:
            return False
        if self.concerns is None:
            return True
        values = [a.value if isinstance(a, Literal) else COLUMN for a in args]
        return self.concerns([a.dtype for a in args], values)


@cache
def _changes(version: str) -> Sequence[ChangedCall]:
    """Return the functions whose results differ between a version of Spark and the engine."""
    release = patch_version(version)
    assert release is not None  # others have no session
    entries: list[Function | AggregateFunction] = [*functions().values(), *aggregate_functions().values()]
    changes = [(entry.name, entry.catalyst, change) for entry in entries for change in entry.changes]
    changes += [(CAST, ("Cast",), change) for change in CAST_CHANGES]
    calls = []
    for name, classes, change in changes:
        if change.is_before(release):
            reason = f"Spark {version}, unlike {change.first}, {change.how}"
            calls.append(ChangedCall(name, classes, change.concerns, reason))
    return calls


def changed_calls(settings: SessionSettings) -> Mapping[str, tuple[ChangedCall, ...]]:
    """Return functions, by the engine's names, with calls that fall back for this version of Spark and these settings."""
    changes = [call for call in _changes(settings.version) if call.concerns is not None]
    changes += _changes_by_time_parser(_time_parser(settings))
    if settings.unexpected(PRECISION_LOSS_SETTING):
        reason = f"arithmetic of decimals is not supported while {PRECISION_LOSS_SETTING} is false"
        for entry in filter(None, map(for_catalyst, _DECIMAL_ARITHMETIC)):
            changes.append(ChangedCall(entry.name, entry.catalyst, _computes_decimals, reason))
    if settings.unexpected(IGNORE_NULL_FIELDS_SETTING):
        reason = f"to_json is not supported while {IGNORE_NULL_FIELDS_SETTING} is false"
        changes.append(ChangedCall("to_json", (), None, reason))
    for title, function, cls, prefixes in _READERS:
        for name, value in _reader_settings(settings, prefixes).items():
            reason = f"{title} strings are not supported while {name} is {value}"
            changes.append(ChangedCall(function, (cls,), None, reason))
    calls: dict[str, tuple[ChangedCall, ...]] = {}
    for call in changes:
        calls[call.function] = (*calls.get(call.function, ()), call)
    return calls


def all_changed_calls(settings: SessionSettings) -> Mapping[str, tuple[ChangedCall, ...]]:
    """Return ``changed_calls`` plus an entry for each function whose calls all fall back.

    Catalyst plans do not need the added entries, because ``declined_classes`` declines their expression classes.
    """
    calls = dict(changed_calls(settings))
    for call in (*_wholly_changed(settings.version), *_printing_changes(_time_parser(settings))):
        calls[call.function] = (*calls.get(call.function, ()), call)
    return calls


def _wholly_changed(version: str) -> list[ChangedCall]:
    """Return the functions whose calls all fall back for a version of Spark."""
    return [call for call in _changes(version) if call.concerns is None]


def _printing_changes(policy: str | None) -> list[ChangedCall]:
    """Return the functions that print times differently under a value of the time parser policy; all calls fall back."""
    if policy in (None, EXCEPTION):
        return []
    reason = f"patterns of times are not supported while {TIME_PARSER} is {policy}"
    entries = filter(None, map(for_catalyst, _PRINTING))
    return [ChangedCall(entry.name, entry.catalyst, None, reason) for entry in entries]


def _changes_by_time_parser(policy: str | None) -> list[ChangedCall]:
    """Return the functions that parse or print times differently under a value of the time parser policy."""
    if policy is None:
        return []
    changes = []
    for title, function, cls, _ in _READERS:
        reason = f"times in {title} strings are not supported while {TIME_PARSER} is {policy}"
        changes.append(ChangedCall(function, (cls,), None, reason))
        if policy != EXCEPTION:
            changes.append(ChangedCall(f"to_{title.lower()}", (), None, reason))
    strings = "strings that may not match a pattern" if policy == EXCEPTION else "patterns of times"
    reason = f"{strings} are not supported while {TIME_PARSER} is {policy}"
    for entry in filter(None, map(for_catalyst, _PARSING)):
        call = ChangedCall(
            entry.name, entry.catalyst, _parses_text, reason, includes_raising_calls=policy != EXCEPTION
        )
        changes.append(call)
    if policy != EXCEPTION:
        reason = f"casts of dates to strings are not supported while {TIME_PARSER} is {policy}"
        changes.append(ChangedCall(CAST, ("Cast",), _prints_dates, reason))
    return changes


def _prints_dates(types: Sequence[pa.DataType], _: Sequence[object]) -> bool:
    """True for casts of dates, or of values that contain dates, to strings: LEGACY prints the year -44 as 0045."""
    source, target = types[:2]
    if source == t.DATE:
        return t.is_string(target)
    return any(_prints_dates(pair, ()) for pair in parts(source, target) or ())


def _parses_text(types: Sequence[pa.DataType], _: Sequence[object]) -> bool:
    return bool(types[0] == t.STRING)


def _reader_settings(settings: SessionSettings, prefixes: Sequence[str]) -> Mapping[str, str]:
    """The settings for reading a text format that have a value that the engine does not support."""
    unexpected = settings.unexpected(*prefixes)
    if settings.corrupt_record_column != CORRUPT_RECORD:
        unexpected["spark.sql.columnNameOfCorruptRecord"] = settings.corrupt_record_column
    return unexpected


def _computes_decimals(types: Sequence[pa.DataType], _: Sequence[object]) -> bool:
    return any(map(t.is_decimal, types))


def _time_parser(settings: SessionSettings) -> str | None:
    """The value of the time parser policy if the engine does not fully support it; otherwise None."""
    policy = settings.unexpected(TIME_PARSER).get(TIME_PARSER)
    return None if policy is None else policy.upper()


def declined_classes(settings: SessionSettings) -> Mapping[str, str]:
    """Return the expression classes that fall back for this version of Spark and these settings, each with the reason."""
    reasons = {
        cls: f"{call.reason}, so {cls} falls back to Spark"
        for call in _wholly_changed(settings.version)
        for cls in call.classes
    }
    return reasons | {
        cls: call.reason for call in _printing_changes(_time_parser(settings)) for cls in call.classes
    }


def check_expressions(node: CatalystNode, reasons: Mapping[str, str]) -> None:
    """Raise Unsupported for a plan node with an expression of a declined class. reasons: the result of declined_classes."""
    if not reasons:
        return
    for top in node.expressions():
        for part in top.walk_all():
            if part.cls in reasons:
                raise Unsupported(reasons[part.cls])
