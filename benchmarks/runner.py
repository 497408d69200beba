"""Runs a suite: every answer compared first, then warm runs of Spark and the engine in turns, then the other engines."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.answers import Answers, exact_difference, value_difference
from benchmarks.compare import session, turns
from benchmarks.engines import IN_SESSION, Engine, OutsideEngine, Run, Settings, Skipped
from benchmarks.engines.spark import KqueryEngine, SparkEngine, remove_outputs
from benchmarks.environment import environment, files, spark_settings
from benchmarks.first_runs import first_runs, with_first_runs
from benchmarks.memory import MemorySampler
from benchmarks.results import EngineResult, QueryResult, Results
from benchmarks.suites import Query, Suite, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Difference = Callable[[pa.Table, pa.Table], "str | None"]
Say = Callable[[str], None]

_MOST_ROUNDS = 10  # upper limit of the rounds of short queries, as a multiple of ``runs``


@dataclass(frozen=True)
class Plan:
    """What to run. ``users``: how many at once share the session in a throughput test afterwards; 1 means none.

    ``runs``: number of warm runs per query and engine. ``seconds``: short queries on Spark and the engine are repeated
    until their warm runs have taken this long together, because the median of a few runs of 50 ms is unreliable.
    ``first``: the number of first runs of a query on Spark and on the engine, each in a new process.
    """

    suite: Suite
    queries: tuple[Query, ...]
    scale: float
    engines: tuple[str, ...]
    runs: int
    settings: Settings
    root: Path
    users: int = 1
    seconds: float = 0.0
    first: int = 0


def run(plan: Plan, say: Say = lambda line: None) -> Results:
    """Make the data, run every query on every engine, return everything that was seen."""
    tables = plan.suite.data(plan.root, plan.scale)
    described = files(tables, plan.root / f"{plan.suite.name}-{plan.scale:g}.sha256.json")
    machine = environment()
    answers = Answers(plan.root / "answers" / f"{plan.suite.name}-{plan.scale:g}")
    started = _now()
    found: dict[str, dict[str, EngineResult]] = {query.name: {} for query in plan.queries}
    settings: dict[str, str] = {}
    throughput: dict[str, Any] = {}
    spark: SparkSession | None = None
    first_results = (
        first_runs(plan.queries, plan.engines, plan.first, plan.settings, tables, answers, say)
        if plan.first
        else {}
    )
    try:
        if any(name in IN_SESSION for name in plan.engines):
            s = plan.settings
            spark = session("kquery_spark bench", s.cores, s.shuffle_partitions, s.driver_memory, s.conf)
            settings = spark_settings(spark)
            _in_session(plan, spark, tables, answers, found, say)
            throughput = _throughput(plan, spark, found, say)
        for name in plan.engines:
            if name not in IN_SESSION:
                _outside(plan, name, spark, tables, answers, found, say)
    finally:
        if spark is not None:
            spark.stop()
            remove_outputs(tables)
    for name, by_engine in first_results.items():
        found[name] |= {
            engine: with_first_runs(found[name][engine], result) for engine, result in by_engine.items()
        }
    return Results(
        suite=plan.suite.name,
        scale=plan.scale,
        engines=plan.engines,
        started=started,
        finished=_now(),
        options={
            "runs": plan.runs,
            "seconds": plan.seconds,
            "first": plan.first,
            "cores": plan.settings.cores,
            "shuffle_partitions": plan.settings.shuffle_partitions,
            "driver_memory": plan.settings.driver_memory,
            "when": plan.settings.when,
            "conf": dict(plan.settings.conf),
            "users": plan.users,
        },
        environment=machine,
        settings=settings,
        files=described,
        queries=tuple(QueryResult(name, engines) for name, engines in found.items()),
        note=plan.suite.note,
        throughput=throughput,
    )


def query_count(plan: Plan) -> int:
    """Return the number of lines that ``run`` reports.

    Each query has one for the engines that share a session, one for each other engine, and one for its first runs.
    """
    others = sum(name not in IN_SESSION for name in plan.engines)
    return len(plan.queries) * (others + (others < len(plan.engines)) + bool(plan.first))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _in_session(
    plan: Plan,
    spark: SparkSession,
    tables: Sequence[Table],
    answers: Answers,
    found: dict[str, dict[str, EngineResult]],
    say: Say,
) -> None:
    made: dict[str, Engine] = {
        "spark": SparkEngine(spark, plan.settings, tables),
        "kquery": KqueryEngine(spark, plan.settings, tables),
    }
    engines = [made[name] for name in IN_SESSION if name in plan.engines]
    if any(query.step is None for query in plan.queries):
        engines[0].load(tables)
    with MemorySampler(os.getpid()) as memory:
        for query in plan.queries:
            found[query.name] = measure(
                query, engines, answers, plan.runs, memory, exact_difference, plan.seconds
            )
            say(_line(query.name, found[query.name]))


def measure(
    query: Query,
    engines: Sequence[Engine],
    answers: Answers,
    runs: int,
    memory: MemorySampler,
    difference: Difference,
    seconds: float = 0.0,
) -> dict[str, EngineResult]:
    """Run each engine once and compare its answer with Spark's, then time ``runs`` warm rounds.

    If these rounds took less than ``seconds``, more follow, up to ``_MOST_ROUNDS * runs`` rounds in all.

    The engines alternate in a random order, so that no engine always finds the caches that another has filled, or
    always pays for its garbage. An engine that fails or returns a wrong answer does not run again.
    """
    results: dict[str, EngineResult] = {}
    for engine in engines:
        results[engine.name] = _first_run(query, engine, engines, answers, memory, difference)
    good = [engine for engine in engines if results[engine.name].status == "ok"]
    started = time.perf_counter()
    for number, turn in enumerate(turns(good, _MOST_ROUNDS * runs, seed=query.name)):
        if number >= runs and time.perf_counter() - started >= seconds:
            break
        for engine in turn:
            before = results[engine.name]
            if before.status == "ok":
                results[engine.name] = _warm_run(query, engine, before, memory)
    return results


def _first_run(
    query: Query,
    engine: Engine,
    engines: Sequence[Engine],
    answers: Answers,
    memory: MemorySampler,
    difference: Difference,
) -> EngineResult:
    memory.reset()
    try:
        first = engine.run(query)
        peak = memory.peak().as_json()
        decision = engine.decision(query) if isinstance(engine, KqueryEngine) else {}
    except Skipped as reason:
        return EngineResult("skipped", str(reason))
    except Exception as error:
        return EngineResult("error", _sentence(error))
    result = EngineResult(
        "ok", rows=first.table.num_rows, cold_seconds=first.seconds, memory=peak, decision=decision
    )
    if engine.name == "spark":
        answers.keep(query.name, first.table)
        return result
    expected = answers.get(query.name)
    if expected is None:
        return replace(result, status="unchecked", detail="Spark has not answered this query on this data")
    found = difference(expected, first.table)
    bare = query.without_limit() if found else None
    if found and bare is not None:
        found = _difference_without_limit(bare, engine, engines, difference) or ""
        result = replace(
            result, detail="" if found else "compared without its LIMIT, where ties decide which rows stay"
        )
    return replace(result, status="wrong", detail=found) if found else result


def _difference_without_limit(
    bare: Query, engine: Engine, engines: Sequence[Engine], difference: Difference
) -> str | None:
    """Compare the results without the LIMIT, because engines may return different rows of those that tie at it."""
    reference = next((one for one in engines if one.name == "spark"), None)
    if reference is None:
        return "the rows differ, and Spark is not here to compare the whole result without the LIMIT"
    try:
        return difference(reference.run(bare).table, engine.run(bare).table)
    except Exception as error:
        return f"the rows differ, and without the LIMIT: {_sentence(error)}"


def _warm_run(query: Query, engine: Engine, before: EngineResult, memory: MemorySampler) -> EngineResult:
    memory.reset()
    try:
        now: Run = engine.run(query)
    except Exception as error:
        return replace(before, status="error", detail=f"in a warm run: {_sentence(error)}")
    peak = memory.peak().as_json()
    if now.table.num_rows != before.rows:
        return replace(
            before, status="wrong", detail=f"{now.table.num_rows} rows in a warm run, {before.rows} at first"
        )
    planning = () if now.planning_seconds is None else (now.planning_seconds,)
    return replace(
        before,
        warm_seconds=(*before.warm_seconds, now.seconds),
        planning_seconds=(*before.planning_seconds, *planning),
        shuffle_bytes=now.shuffle_bytes,
        memory={key: max(value, before.memory.get(key, 0)) for key, value in peak.items()},
    )


def _outside(
    plan: Plan,
    name: str,
    spark: SparkSession | None,
    tables: Sequence[Table],
    answers: Answers,
    found: dict[str, dict[str, EngineResult]],
    say: Say,
) -> None:
    try:
        engine = OutsideEngine(name, plan.settings)
    except Skipped as reason:
        say(f"{name}: skipped, {reason}")
        for query in plan.queries:
            found[query.name][name] = EngineResult("skipped", str(reason))
        return
    reference: list[Engine] = [SparkEngine(spark, plan.settings)] if spark is not None else []
    difference = exact_difference if name == "local" else value_difference
    try:
        engine.load(tables)
        with MemorySampler(engine.pid or os.getpid()) as memory:
            for query in plan.queries:
                result = _first_run(query, engine, [*reference, engine], answers, memory, difference)
                for _ in range(plan.runs if result.status == "ok" else 0):
                    result = _warm_run(query, engine, result, memory)
                if name != "local" and result.status == "error":
                    result = replace(result, status="skipped")
                # here the engine itself is the child, and nothing is below it
                sizes = {
                    **result.memory,
                    "total": sum(result.memory.get(k, 0) for k in ("driver", "jvm", "workers")),
                }
                found[query.name][name] = replace(result, memory=sizes if result.memory else {})
                say(_line(query.name, {name: found[query.name][name]}))
    except Skipped as reason:
        say(f"{name}: skipped, {reason}")
        for query in plan.queries:
            found[query.name].setdefault(name, EngineResult("skipped", str(reason)))
    finally:
        engine.close()


def _throughput(
    plan: Plan, spark: SparkSession, found: dict[str, dict[str, EngineResult]], say: Say
) -> dict[str, Any]:
    """``users`` at once, each with all queries in an order of its own, on one engine after the other."""
    if plan.users < 2:
        return {}
    made: dict[str, Engine] = {
        "spark": SparkEngine(spark, plan.settings),
        "kquery": KqueryEngine(spark, plan.settings),
    }
    engines = [name for name in IN_SESSION if name in plan.engines]
    # settings and kq.enable belong to the session that all users share: steps and queries with settings are excluded
    right = [
        query
        for query in plan.queries
        if not query.settings
        and query.step is None
        and all(found[query.name][name].status == "ok" for name in engines)
    ]
    seconds: dict[str, float] = {}
    for name in engines:

        def stream(user: int, engine: Engine = made[name]) -> None:
            for step in range(len(right)):
                engine.run(right[(step + user * 7) % len(right)])

        start = time.perf_counter()
        with ThreadPoolExecutor(plan.users) as pool:
            list(pool.map(stream, range(plan.users)))
        seconds[name] = time.perf_counter() - start
        say(f"{plan.users} users at once, {name}: {seconds[name]:.1f} s")
    return {"users": plan.users, "queries": [query.name for query in right], "seconds": seconds}


def _sentence(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _line(name: str, results: dict[str, EngineResult]) -> str:
    parts = []
    for engine, one in results.items():
        median = one.median
        if median is None and one.status == "ok":
            median = one.cold_seconds
        shown = f"{median * 1000:,.0f} ms" if median is not None else f"{one.status}: {one.detail}"
        parts.append(f"{engine} {shown}")
    return f"{name}: " + ", ".join(parts)
