"""The analyzer's input and output: the catalog, the session's settings, the resolved query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from kquery_spark.functions.registry import EvalMode
from kquery_spark.logical import LogicalPlan


class Catalog(Protocol):
    """Finds tables by name."""

    def table(self, name: tuple[str, ...]) -> LogicalPlan | None:
        """The plan that reads a table, with the table's columns as its schema; None for an unknown name."""

    def table_names(self) -> list[str]:
        """The names of all tables, for error messages."""


@dataclass(frozen=True)
class SessionFacts:
    """The settings of a session that decide a query's meaning.

    These are ``spark.sql.session.timeZone``, ``ansi.enabled``, ``caseSensitive``, ``mapKeyDedupPolicy`` (whether it is
    LAST_WIN), ``cteRecursionLevelLimit`` and ``cteRecursionRowLimit`` (None: no limit), and ``now_micros``, the time when
    the query began, for ``current_date`` and ``current_timestamp`` (None: the time of the analysis).
    """

    time_zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False
    now_micros: int | None = None
    last_key_wins: bool = False
    recursion_rounds: int | None = 100
    recursion_rows: int | None = 1_000_000

    @property
    def mode(self) -> EvalMode:
        """The evaluation mode of overflow and bad casts."""
        return EvalMode.ANSI if self.ansi else EvalMode.LEGACY

    @property
    def map_mode(self) -> EvalMode:
        """The evaluation mode of functions that build maps."""
        return EvalMode.LEGACY if self.last_key_wins else EvalMode.ANSI

    def fold(self, name: str) -> str:
        """The form of a name in which names are compared."""
        return name if self.case_sensitive else name.lower()


@dataclass(frozen=True)
class Analyzed:
    """A resolved query. names: Spark's column names, which may contain duplicates, unlike the plan's own column names."""

    plan: LogicalPlan
    names: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the result under their names."""
        return pa.schema([f.with_name(n) for f, n in zip(self.plan.schema, self.names, strict=True)])
