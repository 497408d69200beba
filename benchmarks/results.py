"""The results of a run: what the JSON file holds, and how it is read back."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

FORMAT = 1
Status = Literal["ok", "wrong", "error", "skipped", "unchecked"]


@dataclass(frozen=True)
class EngineResult:
    """One query on one engine.

    status: only the times of "ok" count: the answer was compared, and equals that of Spark. "wrong": it differs.
    "unchecked": there was no answer of Spark to compare with. detail: the difference, the error or the reason.
    cold_seconds: the first run, which also is the compared one. warm_seconds: every run after it. first_seconds:
    first runs, each in a new process, if there were any.
    shuffle_bytes: written to shuffles by one warm run. memory: peak bytes of driver, JVM, workers while it ran.
    decision: for our engine, the share of the plan that it ran, and why the other parts fell back to Spark.
    """

    status: Status
    detail: str = ""
    rows: int | None = None
    cold_seconds: float | None = None
    warm_seconds: tuple[float, ...] = ()
    first_seconds: tuple[float, ...] = ()
    planning_seconds: tuple[float, ...] = ()
    shuffle_bytes: int | None = None
    memory: dict[str, int] = field(default_factory=dict)
    decision: dict[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float | None:
        """The median of the warm runs, None unless the answer is right."""
        return statistics.median(self.warm_seconds) if self.status == "ok" and self.warm_seconds else None

    @property
    def first(self) -> float | None:
        """The median of the first runs in new processes; None if there were none or the answer is not right."""
        return statistics.median(self.first_seconds) if self.status == "ok" and self.first_seconds else None

    @property
    def planning(self) -> float | None:
        """The median of the planning times of the warm runs, if the engine reports them."""
        return (
            statistics.median(self.planning_seconds)
            if self.status == "ok" and self.planning_seconds
            else None
        )

    def as_json(self) -> dict[str, Any]:
        """Everything, and the medians, for readers without this module."""
        medians = {
            "median_seconds": self.median,
            "first_median_seconds": self.first,
            "planning_median_seconds": self.planning,
        }
        return {**asdict(self), **medians}


@dataclass(frozen=True)
class QueryResult:
    """One query on every engine."""

    name: str
    engines: dict[str, EngineResult]

    def ratio(self, base: str, other: str) -> float | None:
        """How many times as long ``base`` takes as ``other``; None unless both answers are right."""
        a, b = self.median(base), self.median(other)
        return a / b if a is not None and b else None

    def first_ratio(self, base: str, other: str) -> float | None:
        """The ``ratio`` of the first runs in new processes; None if there were none."""
        a, b = (self.engines[name].first if name in self.engines else None for name in (base, other))
        return a / b if a is not None and b else None

    def median(self, engine: str) -> float | None:
        """An engine's warm median."""
        return self.engines[engine].median if engine in self.engines else None

    def as_json(self) -> dict[str, Any]:
        """As in the file."""
        return {"name": self.name, "engines": {name: one.as_json() for name, one in self.engines.items()}}


@dataclass(frozen=True)
class Results:
    """One run of a suite. ``options`` are the run's own (scale, runs, cores ...), ``settings`` Spark's."""

    suite: str
    scale: float
    engines: tuple[str, ...]
    started: str
    finished: str
    options: dict[str, Any]
    environment: dict[str, Any]
    settings: dict[str, str]
    files: list[dict[str, Any]]
    queries: tuple[QueryResult, ...]
    note: str = ""
    throughput: dict[str, Any] = field(default_factory=dict)

    def ratios(self, base: str = "spark", other: str = "kquery") -> dict[str, float]:
        """The ratio of every query both engines answered right."""
        found = ((query.name, query.ratio(base, other)) for query in self.queries)
        return {name: ratio for name, ratio in found if ratio is not None}

    def first_ratios(self, base: str = "spark", other: str = "kquery") -> dict[str, float]:
        """The ratio of the first runs of every query that has any."""
        found = ((query.name, query.first_ratio(base, other)) for query in self.queries)
        return {name: ratio for name, ratio in found if ratio is not None}

    def total(self, engine: str) -> float | None:
        """The sum of an engine's medians; None unless it answered every query right."""
        medians = [query.median(engine) for query in self.queries]
        return sum(m for m in medians if m is not None) if medians and None not in medians else None

    def peak_memory(self, engine: str) -> int | None:
        """The largest total of JVM and workers over all queries."""
        totals = [q.engines[engine].memory.get("total", 0) for q in self.queries if engine in q.engines]
        return max(totals, default=0) or None

    def failed(self) -> list[str]:
        """Queries whose answer by our engine is not Spark's, or that ended in an error, as ``name (engine: status)``."""
        return [
            f"{query.name} ({engine}: {one.status})"
            for query in self.queries
            for engine, one in query.engines.items()
            if one.status in ("wrong", "error") and engine in ("spark", "kquery", "local")
        ]

    def summary(self) -> dict[str, Any]:
        """The figures a reader looks for first."""
        first = self.first_ratios()
        plannings = [one.planning for q in self.queries if (one := q.engines.get("kquery")) and one.planning]
        return {
            "total_seconds": {engine: self.total(engine) for engine in self.engines},
            "answered": {
                engine: sum(
                    1 for q in self.queries if engine in q.engines and q.engines[engine].status == "ok"
                )
                for engine in self.engines
            },
            "peak_memory": {engine: self.peak_memory(engine) for engine in self.engines},
            "spark_over_kquery": _ratio_summary(self.ratios()),
            **({"spark_over_kquery_first_runs": _ratio_summary(first)} if first else {}),
            "kquery_planning_median_seconds": statistics.median(plannings) if plannings else None,
            "failed": self.failed(),
        }

    def as_json(self) -> dict[str, Any]:
        """As in the file."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "queries"}
        return {
            "format": FORMAT,
            "summary": self.summary(),
            **plain,
            "queries": [query.as_json() for query in self.queries],
        }

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".part")
        aside.write_text(json.dumps(self.as_json(), indent=1) + "\n")
        aside.replace(path)


def _ratio_summary(ratios: dict[str, float]) -> dict[str, Any]:
    return {
        "geometric_mean": geometric_mean(ratios.values()),
        "lowest": min(ratios.items(), key=lambda item: item[1], default=None),
        "below_one": sorted(name for name, ratio in ratios.items() if ratio < 1),
    }


def read(path: Path) -> Results:
    """Read a file that ``Results.write`` wrote; ValueError says what is wrong with any other."""
    try:
        record = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"{path} is not a benchmark result of format {FORMAT}")
    names = {f.name for f in fields(Results)}
    plain = {key: value for key, value in record.items() if key in names}
    plain["engines"] = tuple(plain["engines"])
    plain["queries"] = tuple(_query(one) for one in record["queries"])
    return Results(**plain)


def _query(record: dict[str, Any]) -> QueryResult:
    return QueryResult(record["name"], {name: _engine(one) for name, one in record["engines"].items()})


def _engine(record: dict[str, Any]) -> EngineResult:
    names = {f.name for f in fields(EngineResult)}
    plain = {key: value for key, value in record.items() if key in names}
    for key in ("warm_seconds", "first_seconds", "planning_seconds"):
        plain[key] = tuple(plain.get(key, ()))
    return EngineResult(**plain)


def merged(runs: Sequence[Results]) -> Results:
    """Combine runs of the same queries in separate sessions: all warm runs, peak memory, the median of the cold runs.

    The JVM's compiler and garbage collector behave differently in each session. A query that runs with the same plan on
    both engines may therefore be 20 % slower on one engine in all runs of a session, and on the other one in the next
    session. Check with ``unlike`` of ``report.py`` that the runs are comparable. ValueError if queries or engines differ.
    """
    first = runs[0]
    shapes = {(run.engines, tuple(query.name for query in run.queries)) for run in runs}
    if len(shapes) > 1:
        raise ValueError("the runs are not of the same queries and engines")
    return replace(
        first,
        started=min(run.started for run in runs),
        finished=max(run.finished for run in runs),
        options={**first.options, "sessions": len(runs)},
        queries=tuple(_merged_query(parts) for parts in zip(*(run.queries for run in runs), strict=True)),
        throughput={},
    )


def _merged_query(parts: Sequence[QueryResult]) -> QueryResult:
    engines = parts[0].engines
    return QueryResult(
        parts[0].name, {name: _merged_engine([part.engines[name] for part in parts]) for name in engines}
    )


def _merged_engine(parts: Sequence[EngineResult]) -> EngineResult:
    bad = next((part for part in parts if part.status != "ok"), None)
    if bad is not None:
        return bad
    if len({part.rows for part in parts}) > 1:
        found = ", ".join(str(part.rows) for part in parts)
        return replace(parts[0], status="wrong", detail=f"rows differ from session to session: {found}")
    cold = [part.cold_seconds for part in parts if part.cold_seconds is not None]
    return replace(
        parts[0],
        cold_seconds=statistics.median(cold) if cold else None,
        warm_seconds=tuple(one for part in parts for one in part.warm_seconds),
        first_seconds=tuple(one for part in parts for one in part.first_seconds),
        planning_seconds=tuple(one for part in parts for one in part.planning_seconds),
        memory={key: max(part.memory.get(key, 0) for part in parts) for key in parts[0].memory},
    )


def geometric_mean(ratios: Iterable[float]) -> float | None:
    """The mean ratio, in which twice as fast and half as fast cancel out; None of nothing."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None
