"""How Spark's plans represent a function, and which releases of Spark answer differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kquery_spark.functions.evaluation import ArgumentTest, EvalMode


@dataclass(frozen=True)
class CatalystParameters:
    """Fields of a Catalyst class that are no arguments.

    fixed: those with the only value for which the entry answers as Spark does. ignored: those that decide nothing, or
    that the importer reads. null_if_not_failing: failOnError = false gives NULL, not Java's wrapped-around number.
    builds_map: in LEGACY mode the last of equal keys wins, as ``spark.sql.mapKeyDedupPolicy`` says.
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
    since: the first release (major, minor) whose patch releases all answer as the engine does.
    patches: the first patch release of each earlier minor release that answers as the engine does.
    """

    how: str
    concerns: ArgumentTest | None = None
    since: tuple[int, int] = (4, 3)
    patches: tuple[tuple[int, int, int], ...] = ()

    def is_before(self, release: tuple[int, int, int]) -> bool:
        """True if a release (major, minor, patch) answers differently from the engine."""
        fixed = any(patch[:2] == release[:2] and patch <= release for patch in self.patches)
        return release[:2] < self.since and not fixed

    @property
    def first(self) -> str:
        """The first releases that answer as the engine does, formatted for a sentence."""
        *patches, minor = (".".join(map(str, release)) for release in (*self.patches, self.since))
        return f"{', '.join(patches)} and {minor}" if patches else minor


@dataclass(frozen=True, kw_only=True)
class SparkForm:
    """How Spark's plans represent a call.

    catalyst: simple names of the Catalyst classes. java: static Java methods that Spark calls instead.
    parameters: required values of fields of the Catalyst classes.
    changes: calls that earlier Spark releases answer differently.
    """

    catalyst: tuple[str, ...] = ()
    java: tuple[JavaMethod, ...] = ()
    parameters: CatalystParameters = NO_PARAMETERS
    changes: tuple[VersionChange, ...] = ()
