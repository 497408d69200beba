"""An engine in a process of its own, so that its threads, memory and libraries are not Spark's."""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import pyarrow as pa

from benchmarks.engines.base import Run, Settings, Skipped
from benchmarks.suites.base import Query, Table

OUTSIDE = {
    "local": ("kquery_spark", "kquery-spark"),
    "duckdb": ("duckdb", "duckdb"),
    "datafusion": ("datafusion", "datafusion"),
    "polars": ("polars", "polars"),
    "sail": ("pysail", "pysail"),
    "comet": ("pyspark", "pyspark"),
}
"""Engine -> the module that must be importable, and the package to install for it."""

_ANSWER_SECONDS = 3600.0


def missing(name: str) -> str | None:
    """Why an engine cannot run here, None when it can be tried."""
    module, package = OUTSIDE[name]
    if importlib.util.find_spec(module) is None:
        return f"{package} is not installed"
    return None


class OutsideEngine:
    """Talks to the child process; only times taken inside the child count."""

    def __init__(self, name: str, settings: Settings) -> None:
        reason = missing(name)
        if reason:
            raise Skipped(reason)
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, settings), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int | None:
        """The child's process number, whose tree the memory sampler watches."""
        return self._process.pid

    def load(self, tables: Sequence[Table]) -> None:
        """Make the tables known in the child; Skipped says why it cannot."""
        self._ask("load", tables)

    def run(self, query: Query) -> Run:
        """Run the query in the child and fetch the result, which no time counts."""
        if query.step is not None:
            raise Skipped("the step needs Spark's DataFrame API")
        data, seconds = self._ask("run", query)
        return Run(pa.ipc.open_stream(data).read_all(), seconds)

    def _ask(self, what: str, argument: object) -> Any:
        try:
            self._pipe.send((what, argument))
            if not self._pipe.poll(_ANSWER_SECONDS):
                raise Skipped(f"{self.name} did not answer within {_ANSWER_SECONDS:.0f} s")
            ok, answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(5)
            raise Skipped(f"the process of {self.name} ended (exit code {self._process.exitcode})") from error
        if not ok:
            raise Skipped(str(answer))
        return answer

    def close(self) -> None:
        """End the child."""
        self._pipe.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(5)


def _serve(pipe: Connection, name: str, settings: Settings) -> None:
    """The child's life: load, run, run, ..., until the pipe closes."""
    engine: Any = None
    reply: tuple[bool, object]
    while True:
        try:
            what, argument = pipe.recv()
        except EOFError:
            break
        try:
            if what == "load":
                engine = importlib.import_module(f"benchmarks.engines.{name}_engine").Engine(settings)
                engine.load(argument)
                answer: object = None
            else:
                run = engine.run(argument)
                answer = (serialized(run.table), run.seconds)
            reply = (True, answer)
        except Exception as error:
            reply = (False, " ".join(f"{type(error).__name__}: {error}".split())[:300])
        try:
            pipe.send(reply)
        except ConnectionError:  # the harness has ended
            break
    if engine is not None:
        engine.close()


def serialized(table: pa.Table) -> bytes:
    """Return the table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
