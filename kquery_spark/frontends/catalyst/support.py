"""Tables of supported Catalyst classes: the handler of each class, its support level, and the reason for limits.

``explain`` prints the reasons and the documentation prints the tables, so both have one source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kquery_spark.types.str_enum import StrEnum


class Level(StrEnum):
    """The support level of a Catalyst class."""

    FULL = "engine"
    PARTIAL = "engine, with conditions"
    NONE = "Spark"


H = TypeVar("H", bound=Callable[..., object])


@dataclass(frozen=True)
class Entry(Generic[H]):
    """One Catalyst class. handler: imports it; None if it falls back to Spark. note: a condition, or the fallback reason."""

    cls: str
    family: str
    level: Level
    note: str = ""
    handler: H | None = None


@dataclass(frozen=True)
class Row:
    """One line of the documentation's table."""

    kind: str
    family: str
    cls: str
    level: Level
    note: str


class Table(Generic[H]):
    """Catalyst classes with their handlers, filled by the decorators below when the modules load."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry[H]] = {}

    def handles(self, *classes: str, family: str, partly: str = "") -> Callable[[H], H]:
        """Register a handler for classes. partly: the condition under which they are supported."""

        def add(handler: H) -> H:
            for cls in classes:
                self._add(Entry(cls, family, Level.PARTIAL if partly else Level.FULL, partly, handler))
            return handler

        return add

    def declines(self, family: str, **reasons: str) -> None:
        """Register classes that fall back to Spark, each with the reason."""
        for cls, reason in reasons.items():
            self._add(Entry(cls, family, Level.NONE, reason))

    def _add(self, entry: Entry[H]) -> None:
        if entry.cls in self.entries:
            raise ValueError(f"{entry.cls} is registered twice")
        self.entries[entry.cls] = entry
