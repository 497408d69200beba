"""Holds the result of a qualification: queries with their nodes, estimated savings, and sums."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from kquery_spark.qualify.estimate import Saving
from kquery_spark.qualify.judgment import RunsOn
from kquery_spark.qualify.names import query_name
from kquery_spark.types.str_enum import StrEnum


class QueryOutcome(StrEnum):
    """How a query ended. Queries that failed or still run count as saving nothing."""

    ENDED = "ended"
    FAILED = "failed"
    RUNNING = "running"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class ReportNode:
    """A node of a query's plan: where it would run, and the reason if Spark would run it.

    conditions: conditions of the engine's support that the log does not show. task_seconds: estimated share of task time.
    """

    name: str
    depth: int
    runs: RunsOn
    reason: str = ""
    conditions: tuple[str, ...] = ()
    task_seconds: float = 0.0


@dataclass(frozen=True)
class QueryReport:
    """One query: its cost on Spark, the nodes that the engine would run, and the estimated savings.

    seconds: wall-clock time; None if the query never ended or never ran. task_seconds: the run time of all its tasks.
    engine_share: the share of the task time (of the plan's nodes if nothing ran) that the engine would run. wall, tasks: the
    saved seconds of wall-clock time and of task time. summary: the tables and operators of the query.
    """

    application: str
    number: int
    description: str
    outcome: QueryOutcome
    seconds: float | None
    task_seconds: float
    cpu_seconds: float
    bytes_read: int
    shuffle_bytes: int
    engine_share: float
    wall: Saving
    tasks: Saving
    nodes: tuple[ReportNode, ...]
    error: str = ""
    summary: str = ""

    @property
    def name(self) -> str:
        """The description that the user set, or what the query does."""
        return query_name(self.description, self.summary, self.number)[0]

    @property
    def detail(self) -> str:
        """What the query does, if its name does not say it; otherwise the line that ran it, if it is known."""
        return query_name(self.description, self.summary, self.number)[1]

    @property
    def runs_whole(self) -> bool:
        """Whether the engine would run all nodes."""
        return bool(self.nodes) and all(node.runs is RunsOn.ENGINE for node in self.nodes)

    def speed_up(self, saved: float) -> float:
        """Return the speed-up of the query if ``saved`` seconds of its wall-clock time are saved."""
        if not self.seconds or saved >= self.seconds:
            return 1.0
        return self.seconds / (self.seconds - saved)


@dataclass(frozen=True)
class ApplicationReport:
    """One application: its log, and notes about it. other_task_seconds: run time of tasks outside of queries."""

    id: str
    name: str
    spark_version: str
    log: str
    other_task_seconds: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cause:
    """A reason why nodes fall back to Spark: their operators, the number of queries, and their task time."""

    reason: str
    operators: tuple[str, ...]
    queries: int
    task_seconds: float


@dataclass(frozen=True)
class Qualification:
    """The result for one path.

    left_out: the number of executions without tasks, mostly commands. accelerated: the number of queries that the engine
    ran, completely or in part, which are left out, too. unreadable: for each file that could not be read, a sentence that
    names it.
    """

    applications: tuple[ApplicationReport, ...]
    queries: tuple[QueryReport, ...]
    left_out: int = 0
    accelerated: int = 0
    unreadable: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of all queries that ended."""
        return sum(query.seconds or 0.0 for query in self.queries if query.outcome is QueryOutcome.ENDED)

    @property
    def task_seconds(self) -> float:
        """Seconds of the tasks of all queries that ended."""
        return sum(query.task_seconds for query in self.queries if query.outcome is QueryOutcome.ENDED)

    @property
    def wall(self) -> Saving:
        """Wall-clock seconds saved, all queries together."""
        return sum((query.wall for query in self.queries), Saving())

    @property
    def tasks(self) -> Saving:
        """Seconds of tasks saved, all queries together."""
        return sum((query.tasks for query in self.queries), Saving())

    @property
    def by_saving(self) -> list[QueryReport]:
        """The queries in descending order of their saving."""
        return sorted(self.queries, key=lambda query: (-query.wall.expected, -(query.seconds or 0.0)))

    @property
    def causes(self) -> list[Cause]:
        """The reasons why nodes fall back to Spark, in descending order of their task time."""
        operators: dict[str, dict[str, None]] = defaultdict(dict)
        queries: dict[str, set[int]] = defaultdict(set)
        seconds: dict[str, float] = defaultdict(float)
        for number, query in enumerate(self.queries):
            for node in query.nodes:
                if node.reason:
                    operators[node.reason][node.name] = None
                    queries[node.reason].add(number)
                    seconds[node.reason] += node.task_seconds
        causes = [
            Cause(reason, tuple(operators[reason]), len(numbers), seconds[reason])
            for reason, numbers in queries.items()
        ]
        return sorted(causes, key=lambda cause: (-cause.task_seconds, -cause.queries))

    def as_dict(self) -> dict[str, Any]:
        """Return the result with its sums as dicts, lists and plain values."""
        return {
            "format": 1,
            "seconds": self.seconds,
            "task_seconds": self.task_seconds,
            "saved_seconds": asdict(self.wall),
            "saved_task_seconds": asdict(self.tasks),
            "left_out": self.left_out,
            "accelerated": self.accelerated,
            "unreadable": self.unreadable,
            "applications": [asdict(application) for application in self.applications],
            "causes": [asdict(cause) for cause in self.causes],
            "queries": [_query_dict(query) for query in self.queries],
        }


def _query_dict(query: QueryReport) -> dict[str, Any]:
    speed_up = {end: query.speed_up(saved) for end, saved in asdict(query.wall).items()}
    return {**asdict(query), "name": query.name, "runs_whole": query.runs_whole, "speed_up": speed_up}
