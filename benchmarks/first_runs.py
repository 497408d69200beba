"""First runs: each runs one query in a new process with a new Spark session, as a submitted job does."""

from __future__ import annotations

import compileall
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

import pyarrow as pa

import kquery_spark
from benchmarks.answers import Answers, exact_difference
from benchmarks.compare import session
from benchmarks.engines import Settings
from benchmarks.engines.outside import serialized
from benchmarks.engines.spark import IN_SESSION_ENGINES, remove_outputs
from benchmarks.results import EngineResult
from benchmarks.suites import Query, Table

_ANSWER_SECONDS = 3600.0


def first_runs(
    queries: Sequence[Query],
    engines: Sequence[str],
    rounds: int,
    settings: Settings,
    tables: Sequence[Table],
    answers: Answers,
    say: Callable[[str], None],
) -> dict[str, dict[str, EngineResult]]:
    """Run each query ``rounds`` times on each engine, in a new process each time; return the results by query and engine.

    Engines other than Spark and kquery are ignored. The two take turns in going first, from one round of a query to the next
    and from one query to the next. The time starts when the session exists, and includes ``kq.enable`` for a step. Answers
    are compared with Spark's. ``say`` receives one line for each query.
    """
    # pip compiles the modules that it installs; here they may come from a checkout that nothing has compiled.
    compileall.compile_dir(Path(kquery_spark.__file__).parent, quiet=2)
    names = [name for name in engines if name in IN_SESSION_ENGINES]
    results_by_query: dict[str, dict[str, EngineResult]] = {}
    for number, query in enumerate(queries):
        results = {name: EngineResult("ok") for name in names}
        for round_number in range(rounds):
            engine_order = names[:: -1 if (number + round_number) % 2 else 1]
            collected: dict[str, pa.Table] = {}
            for name in engine_order:
                results[name] = _run_once(query, name, settings, tables, results[name], collected)
            if "spark" in collected:
                answers.keep(query.name, collected.pop("spark"))
            for name, table in collected.items():
                results[name] = _compared(results[name], answers.get(query.name), table)
        results_by_query[query.name] = results
        say(
            f"{query.name}, first run: "
            + ", ".join(f"{name} {_time_or_failure(one)}" for name, one in results.items())
        )
    return results_by_query


def with_first_runs(warm: EngineResult, first: EngineResult | None) -> EngineResult:
    """Add the times of first runs to an engine's result; if a first run failed, return its failure as the result."""
    if first is None:
        return warm
    if warm.status == "ok" and first.status != "ok":
        return replace(warm, status=first.status, detail=f"in a first run: {first.detail}")
    return replace(warm, first_seconds=first.first_seconds)


def _run_once(
    query: Query,
    name: str,
    settings: Settings,
    tables: Sequence[Table],
    previous: EngineResult,
    collected: dict[str, pa.Table],
) -> EngineResult:
    """Run a query in a new process and put its rows into ``collected``, unless a previous run of the engine failed."""
    if previous.status != "ok":
        return previous
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, name, settings, tables, query))
    # The new process inherits that SIGINT is ignored, so Ctrl-C does not end its imports with a traceback.
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, handler)
    theirs.close()
    try:
        if not ours.poll(_ANSWER_SECONDS):
            return replace(previous, status="error", detail=f"no answer within {_ANSWER_SECONDS:.0f} s")
        answered, answer = ours.recv()
    except EOFError:
        process.join()
        return replace(previous, status="error", detail=f"the process ended (exit code {process.exitcode})")
    finally:
        ours.close()  # which ends a run that has not answered
        process.join(60)
        if process.is_alive():
            process.kill()
            process.join()
    if not answered:
        return replace(previous, status="error", detail=str(answer))
    data, seconds = answer
    collected[name] = pa.ipc.open_stream(data).read_all()
    return replace(previous, first_seconds=(*previous.first_seconds, seconds))


def _compared(result: EngineResult, expected: pa.Table | None, actual: pa.Table) -> EngineResult:
    if expected is None:
        return replace(result, status="unchecked", detail="Spark has not answered this query on this data")
    difference = exact_difference(expected, actual)
    return replace(result, status="wrong", detail=difference) if difference else result


def _serve(pipe: Connection, name: str, settings: Settings, tables: Sequence[Table], query: Query) -> None:
    """Run one query in the new process, and send its rows and seconds, or its error.

    If the parent closes its end of the pipe or dies, the process stops its Spark session and ends without a message.
    """
    signal.signal(signal.SIGINT, _interrupt)
    try:
        threading.Thread(target=_interrupt_at_end_of, args=(pipe,), daemon=True).start()
        answer: tuple[bool, object] = (True, _run_in_own_session(name, settings, tables, query))
    except KeyboardInterrupt:
        return
    except Exception as error:
        answer = (False, " ".join(f"{type(error).__name__}: {error}".split())[:300])
    with suppress(ConnectionError):
        pipe.send(answer)


def _interrupt_at_end_of(pipe: Connection) -> None:
    """Interrupt the main thread when the parent closes its end of the pipe. The parent never sends anything."""
    pipe.poll(None)
    os.kill(os.getpid(), signal.SIGINT)


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second interrupt must not end the cleanup
    logging.disable()  # py4j logs the call that is interrupted
    raise KeyboardInterrupt


def _run_in_own_session(
    name: str, settings: Settings, tables: Sequence[Table], query: Query
) -> tuple[bytes, float]:
    """Run the query in a new session; return its rows as an Arrow IPC stream, and its seconds."""
    spark = None
    try:
        spark = session(
            "kquery_spark bench first run",
            settings.cores,
            settings.shuffle_partitions,
            settings.driver_memory,
            settings.conf,
        )
        # replaces the handler of PySpark, which calls the JVM within the call that it interrupts
        signal.signal(signal.SIGINT, _interrupt)
        engine = IN_SESSION_ENGINES[name](spark, settings, tables)
        if query.step is None:
            engine.load(tables)
        run = engine.run(query)
        return serialized(run.table), run.seconds
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if spark is not None:
            # a new thread has its own connection to the JVM; the one of this thread breaks if a call is interrupted
            stopper = threading.Thread(target=spark.stop)
            stopper.start()
            stopper.join()
        remove_outputs(tables)


def _time_or_failure(result: EngineResult) -> str:
    return (
        f"{result.first * 1000:,.0f} ms" if result.first is not None else f"{result.status}: {result.detail}"
    )
