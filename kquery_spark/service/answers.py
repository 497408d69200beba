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
    """Limits of a service on the load that its clients cause.

    running_queries: the number of queries that run at the same time; further queries wait. waiting_seconds: how long a query
    waits to start before it fails. unread_seconds: how long a result waits until its client reads the next batch.
    query_seconds: the time to plan and run one query; None for no limit. request_bytes: the size of one command, ticket or
    action, including the rows that a client sends with it. read_ahead_bytes: the bytes of all results together that are
    computed before their clients read them; each query may hold one batch beyond this limit.
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
            raise ConfigError("the limits of a service must be positive")


class _WatchedQuery:
    """The state of a query that the watcher thread checks against the limits.

    The query is either in planning, or it runs and holds a slot of the semaphore. unread_since: when the batch that waits
    for the client was computed; None if no batch waits.
    """

    def __init__(self, stop: Stop, started: float, has_slot: bool) -> None:
        self.stop = stop
        self.started = started
        self.unread_since: float | None = None
        self.has_slot = has_slot
        self.is_planning = not has_slot


class Query:
    """One client request, from planning to its last batch.

    planning_seconds: the time that planning took, which counts as run time.
    """

    def __init__(self, is_cancelled: Callable[[], bool]) -> None:
        """is_cancelled: detects a disconnected client. Only the thread of the request may call it, during the request."""
        self.stop = Stop(lambda: "its client is gone" if is_cancelled() else "", small_batches=True)
        self.planning_seconds = 0.0


class _PlanningControl(RunControl):
    """Interrupts planning for the reasons for which ``Stop`` ends a run; planning runs in the thread of the request."""

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
    """Plans queries and streams their results within the limits.

    A watcher thread checks all active queries every half second, and ends when there are none.
    """

    def __init__(self, limits: ServiceLimits) -> None:
        self.budget = ReadAheadBudget(limits.read_ahead_bytes)
        self._limits = limits
        self._slots = threading.Semaphore(limits.running_queries)
        self._lock = threading.Lock()
        self._watched: set[_WatchedQuery] = set()
        self._ended = 0
        self._freed_memory = FreedMemory()
        self._watcher: threading.Thread | None = None

    @property
    def running(self) -> int:
        """The number of queries that run."""
        with self._lock:
            return self._running_count()

    def _running_count(self) -> int:
        return sum(not query.is_planning for query in self._watched)

    def plan(self, query: Query, step: Callable[[], R]) -> R:
        """Run a step of planning; raises ExecutionError if it takes too long or the client disconnects."""
        started = time.monotonic()
        try:
            with self._watching(_WatchedQuery(query.stop, started, has_slot=False)):
                return _PlanningControl(query.stop).controlled(step)()
        except RunStopped:
            query.stop.check()
            raise
        finally:
            query.planning_seconds += time.monotonic() - started

    def stream(self, answer: pa.RecordBatchReader, query: Query) -> Iterator[pa.RecordBatch]:
        """Wait for a free slot, then yield the batches of ``query``'s answer."""
        stop = query.stop
        self._wait_for_slot(stop)
        running = _WatchedQuery(stop, time.monotonic() - query.planning_seconds, has_slot=True)
        with self._watching(running), answer:
            try:
                for batch in answer:
                    running.unread_since = time.monotonic()
                    yield batch
                    running.unread_since = None
                    stop.check()
            finally:
                # Closing the reader does not close the generator behind it. So end the query here: it must free its memory
                # before it frees its slot.
                stop.set("its result was closed")

    def release_memory(self, freed: FreedMemory) -> None:
        """Return memory of ended queries to the system if a release is due. freed: the state of the calling thread."""
        with self._lock:
            ended, running = self._ended, self._running_count()
        freed.release_if_due(ended, running)

    def _wait_for_slot(self, stop: Stop) -> None:
        limits = self._limits
        end = time.monotonic() + limits.waiting_seconds
        while not self._slots.acquire(timeout=_POLL_SECONDS):
            stop.check()
            if time.monotonic() > end:
                raise KQueryError(
                    f"the service runs {limits.running_queries} queries already, and this one waited "
                    f"{limits.waiting_seconds:g} s; try again later"
                )

    @contextmanager
    def _watching(self, query: _WatchedQuery) -> Iterator[None]:
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
                self._ended += not query.is_planning
                self._release(query)

    def _release(self, query: _WatchedQuery) -> None:
        if query.has_slot:
            query.has_slot = False
            self._slots.release()

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
                        # Only the request's thread still waits for the client. The tasks end, so others may run.
                        self._release(query)

    def _overdue(self, query: _WatchedQuery) -> str:
        now, limits, since = time.monotonic(), self._limits, query.unread_since
        if since is not None and now - since > limits.unread_seconds:
            return f"its client read no rows for {limits.unread_seconds:g} s"
        if limits.query_seconds is not None and now - query.started > limits.query_seconds:
            return f"it took more than {limits.query_seconds:g} s"
        return ""
