"""What the harness asks of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from benchmarks.suites.base import Query, Table


class Skipped(Exception):
    """An engine cannot run a query, or cannot run here; the text is the reason that goes into the results."""


@dataclass(frozen=True)
class Run:
    """One run of one query: the whole result, the wall-clock seconds until it was complete, and the part of them that planning took."""

    table: pa.Table
    seconds: float
    planning_seconds: float | None = None
    shuffle_bytes: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """Options that every engine gets. ``cores`` bounds threads and tasks; ``conf`` has settings of Spark and kquery_spark."""

    cores: int
    shuffle_partitions: int
    driver_memory: str
    when: str = "auto"
    conf: Mapping[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """Loads tables, then runs queries; every run starts from the query's text."""

    name: str

    def load(self, tables: Sequence[Table]) -> None:
        """Make the tables known under their names; no data is read ahead of the queries."""

    def run(self, query: Query) -> Run:
        """Plan and run, up to the whole result as Arrow; ``Skipped`` says why it cannot."""

    def close(self) -> None:
        """Let go of everything."""
