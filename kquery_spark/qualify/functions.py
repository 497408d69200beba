"""Which functions that the texts of plans call the engine has: those of the registry, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from kquery_spark.frontends.catalyst.importer import support_table
from kquery_spark.frontends.catalyst.support import Level
from kquery_spark.functions.aggregate_registry import AggregateFunction, aggregate_functions
from kquery_spark.functions.call_form import registered_names
from kquery_spark.functions.registry import Function, functions
from kquery_spark.qualify.calls import calls_in
from kquery_spark.spark_bridge.versions import Version, minor_version

# Words before parentheses in physical plans that are no functions of anybody's: parts of windows, lambdas and partitionings,
# and what Spark's optimizer adds to keys and sums, which the engine does without.
_SYNTAX = frozenset(
    {
        *("hashpartitioning", "rangepartitioning", "roundrobinpartitioning", "windowspecdefinition"),
        *("specifiedwindowframe", "lambdafunction", "namedlambdavariable", "list", "some", "input", "set"),
        *("knownfloatingpointnormalized", "normalizenanandzero", "knownnullable", "knownnotnull"),
        *("checkoverflow", "promoteprecision", "unscaledvalue", "makedecimal", "hashexpression"),
        *(
            "dynamicpruningexpression",
            "dynamicpruning",
            "scalarsubquery",
            "existencejoin",
            "unboundedpreceding$",
        ),
        *("unboundedfollowing$", "currentrow$", "keys=", "functions="),
    }
)
# The function of Bloom filters that Spark adds to joins, and the aggregate that fills them.
_OWN_FILTERS = frozenset({"might_contain", "bloomfiltermightcontain", "bloom_filter_agg"})


@dataclass(frozen=True)
class FunctionSupport:
    """How far a function is supported; ``note`` is the condition, or the reason why Spark keeps it."""

    level: Level
    note: str = ""


@dataclass(frozen=True)
class CallSupport:
    """What the calls of a node's text come to: reasons why it stays with Spark, and conditions that nobody could check."""

    reasons: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


def call_support(text: str, version: str) -> CallSupport:
    """Look up every function that a text calls, for a Spark of a version."""
    known = known_functions(minor_version(version))
    reasons: dict[str, None] = {}
    conditions: dict[str, None] = {}
    for name in calls_in(text):
        if name in _SYNTAX or name in _OWN_FILTERS:
            continue
        support = known.get(name)
        if support is None:
            reasons[f"the engine has no function {name}"] = None
        elif support.level is Level.NONE:
            reasons[support.note] = None
        elif support.level is Level.PARTIAL and support.note:
            conditions[f"{name}: {support.note}"] = None
    return CallSupport(tuple(reasons), tuple(conditions))


@cache
def known_functions(release: Version | None) -> Mapping[str, FunctionSupport]:
    """Support by name, in lower case: names of SQL, and of Catalyst's classes, which plans print where SQL has none."""
    known = {name.lower(): FunctionSupport(Level.FULL) for name in registered_names()}
    rows = {row.cls: row for row in support_table() if row.kind != "plan"}
    for row in rows.values():
        note = row.note if row.level is not Level.FULL else ""
        known[row.cls.lower()] = FunctionSupport(row.level, note)
    entries: list[Function | AggregateFunction] = [*functions().values(), *aggregate_functions().values()]
    for entry in entries:
        support = _of_entry(entry, release)
        names = [*_names(entry), *(cls for cls in entry.catalyst if rows[cls].level is Level.FULL)]
        if support.level is not Level.FULL:
            known.update((name.lower(), support) for name in names)
    return known


def _names(entry: Function | AggregateFunction) -> Iterator[str]:
    yield entry.name
    yield from entry.aliases


def _of_entry(entry: Function | AggregateFunction, release: Version | None) -> FunctionSupport:
    """What a release says of an entry; one that is not known is taken for the last."""
    changes = [change for change in entry.changes if release is not None and release < change.since]
    for change in changes:
        since = ".".join(map(str, change.since))
        if change.concerns is None:
            return FunctionSupport(Level.NONE, f"{entry.name}: Spark before {since} {change.how}")
    if changes:
        return FunctionSupport(
            Level.PARTIAL, f"some calls stay with Spark before {changes[0].since[0]}.{changes[0].since[1]}"
        )
    return FunctionSupport(Level.FULL)
