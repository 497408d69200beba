"""Describes how Spark's plans represent a function, and in which releases of Spark its results differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kquery_spark.functions.evaluation import ArgumentTest, EvalMode


@dataclass(frozen=True)
class CatalystParameters:
    """Fields of a Catalyst class that are not arguments.

    fixed: fields, each with the only value that the entry supports. ignored: fields that have no effect, or that the
    importer handles. null_if_not_failing: with failOnError = false, the result is NULL instead of Java's wrapped-around
    number. builds_map: in LEGACY mode the last of duplicate keys wins, as ``spark.sql.mapKeyDedupPolicy`` says.
    """

    fixed: tuple[tuple[str, object], ...] = ()
    ignored: tuple[str, ...] = ()
    null_if_not_failing: bool = False
    builds_map: bool = False


NO_PARAMETERS = CatalystParameters()


@dataclass(frozen=True)
class JavaMethod:
    """A static Java method that represents a function in Spark's plans (``StaticInvoke``).

    owner: the simple name of the class. constants: positions and values of arguments that the function does not have; the
    method represents the function only with these values. mode: the evaluation mode of such a call.
    """

    owner: str
    method: str
    constants: tuple[tuple[int, object], ...] = ()
    mode: EvalMode = EvalMode.ANSI

    def own_arguments(self, literals: Sequence[object]) -> list[int] | None:
        """Return the positions of the function's arguments in a call; None if the call does not represent the function."""
        if any(i >= len(literals) or literals[i] != value for i, value in self.constants):
            return None
        dropped = {i for i, _ in self.constants}
        return [i for i in range(len(literals)) if i not in dropped]


@dataclass(frozen=True)
class VersionChange:
    """Calls whose result differs in earlier Spark releases; they fall back to Spark there.

    how: what those releases do, as the end of a sentence.
    concerns: takes argument types and literal values (COLUMN for other arguments) and returns True for affected calls.
    None: all calls are affected.
    since: the first release (major, minor) in which all patch releases return the engine's result.
    patches: the first patch release of each earlier minor release that returns the engine's result.
    """

    how: str
    concerns: ArgumentTest | None = None
    since: tuple[int, int] = (4, 3)
    patches: tuple[tuple[int, int, int], ...] = ()

    def is_before(self, release: tuple[int, int, int]) -> bool:
        """True if a release (major, minor, patch) returns another result than the engine."""
        fixed = any(patch[:2] == release[:2] and patch <= release for patch in self.patches)
        return release[:2] < self.since and not fixed

    @property
    def first(self) -> str:
        """The first releases that return the engine's result, formatted for a sentence."""
        *patches, minor = (".".join(map(str, release)) for release in (*self.patches, self.since))
        return f"{', '.join(patches)} and {minor}" if patches else minor


@dataclass(frozen=True, kw_only=True)
class SparkForm:
    """How Spark's plans represent a call.

    catalyst: simple names of the Catalyst classes. java: static Java methods that Spark calls instead.
    parameters: required values of fields of the Catalyst classes.
    changes: calls whose results differ in earlier Spark releases.
    """

    catalyst: tuple[str, ...] = ()
    java: tuple[JavaMethod, ...] = ()
    parameters: CatalystParameters = NO_PARAMETERS
    changes: tuple[VersionChange, ...] = ()
