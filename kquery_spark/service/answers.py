"""Streams query results to clients and enforces the limits of the service.

A query ends early if its client has disconnected, has not read for too long, or if its time limit is reached.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import ConfigError, KQueryError
from kquery_spark.run_control import RunControl, RunStopped
from kquery_spark.runtime.local import ReadAheadBudget, Stop
from kquery_spark.service.freed_memory import FreedMemory

R = TypeVar("R")

_POLL_SECONDS = 0.2
_WATCH_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class ServiceLimits:
    """What clients of a service can take of it.

    running_queries: at once; more wait. waiting_seconds: for how long, before they are refused. unread_seconds: how long
    a result waits for its client to take the next batch. query_seconds: to plan and to run a query, None for no limit.
    request_bytes: of one command, ticket or action, with the rows that a client sends along.
    read_ahead_bytes: of all results together that are computed before their clients take them; each query may hold a batch
    more.
    """

    running_queries: int = 64
    waiting_seconds: float = 60.0
    unread_seconds: float = 300.0
    query_seconds: float | None = None
    request_bytes: int = 256 << 20
    read_ahead_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        seconds = (self.waiting_seconds, self.unread_seconds, self.query_seconds or 1.0)
        counts = (self.running_queries, self.request_bytes, self.read_ahead_bytes)
        if min(counts) < 1 or min(seconds) <= 0:
            raise ConfigError("the limits of a service have to be positive")


class _Watched:
    """A query that is planned, or one that runs and has a place. ``unread_since`` while a batch waits for the client."""

    def __init__(self, stop: Stop, started: float, has_place: bool) -> None:
        self.stop = stop
        self.started = started
        self.unread_since: float | None = None
        self.has_place = has_place
        self.is_planned = not has_place


class Query:
    """A request on its way through the service. planning_seconds: how long its planning took, which counts as run time."""

    def __init__(self, is_cancelled: Callable[[], bool]) -> None:
        """is_cancelled: may be called by the thread of the request only, while it lasts."""
        self.stop = Stop(lambda: "its client is gone" if is_cancelled() else "", small_batches=True)
        self.planning_seconds = 0.0


class _PlanningControl(RunControl):
    """Stops planning, which happens in the thread of the request, as ``Stop`` ends a run."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(within=stop.control)
        self._stop_of_query = stop
        self._next_poll = 0.0

    @override
    def check(self) -> None:
        now = time.monotonic()
        if now > self._next_poll:
            self._next_poll = now + _POLL_SECONDS
            self._stop_of_query.poll()
        super().check()


class Answers:
    """Streams results within the limits. A thread watches the queries while there are any."""

    def __init__(self, limits: ServiceLimits) -> None:
        self.budget = ReadAheadBudget(limits.read_ahead_bytes)
        self._limits = limits
        self._places = threading.Semaphore(limits.running_queries)
        self._lock = threading.Lock()
        self._watched: set[_Watched] = set()
        self._ended = 0
        self._freed_memory = FreedMemory()
        self._watcher: threading.Thread | None = None

    @property
    def running(self) -> int:
        """How many queries run."""
        with self._lock:
            return self._running_count()

    def _running_count(self) -> int:
        return sum(not query.is_planned for query in self._watched)

    def plan(self, query: Query, step: Callable[[], R]) -> R:
        """Run a step of planning; ExecutionError where it takes too long or the client leaves."""
        started = time.monotonic()
        try:
            with self._watching(_Watched(query.stop, started, has_place=False)):
                return _PlanningControl(query.stop).controlled(step)()
        except RunStopped:
            query.stop.check()
            raise
        finally:
            query.planning_seconds += time.monotonic() - started

    def stream(self, answer: pa.RecordBatchReader, query: Query) -> Iterator[pa.RecordBatch]:
        """The batches of an answer that was made for ``query``; waits for a place first."""
        stop = query.stop
        self._wait_for_place(stop)
        running = _Watched(stop, time.monotonic() - query.planning_seconds, has_place=True)
        with self._watching(running), answer:
            for batch in answer:
                running.unread_since = time.monotonic()
                yield batch
                running.unread_since = None
                stop.check()

    def release_memory(self, freed: FreedMemory) -> None:
        """Give memory of ended queries back to the system if it is time to. freed: of the calling thread."""
        with self._lock:
            ended, running = self._ended, self._running_count()
        freed.release_if_due(ended, running)

    def _wait_for_place(self, stop: Stop) -> None:
        limits = self._limits
        end = time.monotonic() + limits.waiting_seconds
        while not self._places.acquire(timeout=_POLL_SECONDS):
            stop.check()
            if time.monotonic() > end:
                raise KQueryError(
                    f"the service runs {limits.running_queries} queries already, and this one waited "
                    f"{limits.waiting_seconds:g} s; try again later"
                )

    @contextmanager
    def _watching(self, query: _Watched) -> Iterator[None]:
        with self._lock:
            self._watched.add(query)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="kquery-service-watch", daemon=True)
                self._watcher.start()
        try:
            yield
        finally:
            with self._lock:
                self._watched.discard(query)
                self._ended += not query.is_planned
                self._release(query)

    def _release(self, query: _Watched) -> None:
        if query.has_place:
            query.has_place = False
            self._places.release()

    def _watch(self) -> None:
        while True:
            time.sleep(_WATCH_POLL_SECONDS)
            self.release_memory(self._freed_memory)
            with self._lock:
                if not self._watched:
                    self._watcher = None
                    return
                for query in self._watched:
                    reason = self._overdue(query)
                    if reason:
                        query.stop.set(reason)
                    if reason and query.unread_since is not None:
                        # its tasks end, and the thread that waits for the client holds nothing that others need
                        self._release(query)

    def _overdue(self, query: _Watched) -> str:
        now, limits, since = time.monotonic(), self._limits, query.unread_since
        if since is not None and now - since > limits.unread_seconds:
            return f"its client took no rows for {limits.unread_seconds:g} s"
        if limits.query_seconds is not None and now - query.started > limits.query_seconds:
            return f"it took more than {limits.query_seconds:g} s"
        return ""
