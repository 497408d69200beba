"""Looks up in the function registry whether the engine supports the functions that a plan string calls."""

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
from kquery_spark.spark_bridge.session.versions import patch_version

# Words before parentheses in physical plans that are not function calls: parts of windows, lambdas and partitionings, and
# wrappers that Spark's optimizer adds to keys and sums, which the engine does not need.
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
# Spark's optimizer adds Bloom filters to joins; the engine has its own.
_BLOOM_FILTERS = frozenset({"might_contain", "bloomfiltermightcontain", "bloom_filter_agg"})


@dataclass(frozen=True)
class FunctionSupport:
    """The support level of a function; ``note`` is the condition, or the reason why it falls back to Spark."""

    level: Level
    note: str = ""


@dataclass(frozen=True)
class CallSupport:
    """Support of a node's function calls.

    reasons: why the node falls back to Spark, if it does. conditions: of partial support, which a log cannot show.
    """

    reasons: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()


def call_support(expressions: str, version: str) -> CallSupport:
    """Look up every function that a plan string calls, for a version of Spark."""
    known = known_functions(patch_version(version))
    reasons: dict[str, None] = {}
    conditions: dict[str, None] = {}
    for name in calls_in(expressions):
        if name in _SYNTAX or name in _BLOOM_FILTERS:
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
def known_functions(release: tuple[int, int, int] | None) -> Mapping[str, FunctionSupport]:
    """Return the support by lower-case name: SQL names, and Catalyst class names, which plans print if SQL has none."""
    known = {name.lower(): FunctionSupport(Level.FULL) for name in registered_names()}
    rows = {row.cls: row for row in support_table() if row.kind != "plan"}
    for row in rows.values():
        note = row.note if row.level is not Level.FULL else ""
        known[row.cls.lower()] = FunctionSupport(row.level, note)
    entries: list[Function | AggregateFunction] = [*functions().values(), *aggregate_functions().values()]
    for entry in entries:
        support = _entry_support(entry, release)
        names = [*_names(entry), *(cls for cls in entry.catalyst if rows[cls].level is Level.FULL)]
        if support.level is not Level.FULL:
            known.update((name.lower(), support) for name in names)
    return known


def _names(entry: Function | AggregateFunction) -> Iterator[str]:
    yield entry.name
    yield from entry.aliases


def _entry_support(
    entry: Function | AggregateFunction, release: tuple[int, int, int] | None
) -> FunctionSupport:
    """Return the support of an entry in a release; an unknown release counts as the latest."""
    changes = [change for change in entry.changes if release is not None and change.is_before(release)]
    for change in changes:
        if change.concerns is None:
            return FunctionSupport(Level.NONE, f"{entry.name}: Spark before {change.first} {change.how}")
    if changes:
        return FunctionSupport(Level.PARTIAL, f"some calls are not supported before {changes[0].first}")
    return FunctionSupport(Level.FULL)
