"""What the analyzer asks of its surroundings, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kquery_spark.functions.registry import EvalMode
from kquery_spark.logical import LogicalPlan


class Catalog(Protocol):
    """Knows tables by name."""

    def table(self, name: tuple[str, ...]) -> LogicalPlan | None:
        """The plan that reads a table, its schema naming the columns, or None when there is none."""

    def table_names(self) -> list[str]:
        """The tables there are, for error messages."""


@dataclass(frozen=True)
class SessionFacts:
    """What of a session decides a query's meaning: ``spark.sql.session.timeZone``, ``ansi.enabled``, ``caseSensitive``.

    ``now_micros`` is the moment the query began, for ``current_date`` and its like.
    """

    time_zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False
    now_micros: int | None = None

    @property
    def mode(self) -> EvalMode:
        """What overflow and bad casts do."""
        return EvalMode.ANSI if self.ansi else EvalMode.LEGACY

    def fold(self, name: str) -> str:
        """A name in the form in which names are compared."""
        return name if self.case_sensitive else name.lower()


@dataclass(frozen=True)
class Analyzed:
    """A resolved query: ``names`` are its columns as Spark names them, which may repeat; the plan's own do not."""

    plan: LogicalPlan
    names: tuple[str, ...]
