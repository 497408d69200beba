"""Answers: so many queries at once, each ended when its client is gone, does not read, or its time is up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import ConfigError, KQueryError
from kquery_spark.runtime.local import ReadAheadBudget, Stop
from kquery_spark.service.freed_memory import FreedMemory

_POLL_SECONDS = 0.2
_WATCH_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class ServiceLimits:
    """What clients of a service can take of it.

    running_queries: at once; more wait. waiting_seconds: for how long, before they are refused. unread_seconds: how long
    a result waits for its client to take the next batch. query_seconds: for a query in all, None for no limit.
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


class _Running:
    """A query that has its place among those that run; ``unread_since`` while a batch waits for the client."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self.started = time.monotonic()
        self.unread_since: float | None = None
        self.has_place = True


class Answers:
    """Streams results within the limits. A thread watches the queries while there are any."""

    def __init__(self, limits: ServiceLimits) -> None:
        self.budget = ReadAheadBudget(limits.read_ahead_bytes)
        self._limits = limits
        self._places = threading.Semaphore(limits.running_queries)
        self._lock = threading.Lock()
        self._running: set[_Running] = set()
        self._ended = 0
        self._freed_memory = FreedMemory()
        self._watcher: threading.Thread | None = None

    @property
    def running(self) -> int:
        """How many queries run."""
        with self._lock:
            return len(self._running)

    def stream(self, answer: pa.RecordBatchReader, stop: Stop) -> Iterator[pa.RecordBatch]:
        """The batches of an answer that was made with ``stop``; waits for a place first."""
        self._wait_for_place(stop)
        with self._placed(stop) as running, answer:
            for batch in answer:
                running.unread_since = time.monotonic()
                yield batch
                running.unread_since = None
                stop.check()

    def release_memory(self, freed: FreedMemory) -> None:
        """Give memory of ended queries back to the system if it is time to. freed: of the calling thread."""
        with self._lock:
            ended, running = self._ended, len(self._running)
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
    def _placed(self, stop: Stop) -> Iterator[_Running]:
        running = _Running(stop)
        with self._lock:
            self._running.add(running)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="kquery-service-watch", daemon=True)
                self._watcher.start()
        try:
            yield running
        finally:
            with self._lock:
                self._running.discard(running)
                self._ended += 1
                self._release(running)

    def _release(self, running: _Running) -> None:
        if running.has_place:
            running.has_place = False
            self._places.release()

    def _watch(self) -> None:
        while True:
            time.sleep(_WATCH_POLL_SECONDS)
            self.release_memory(self._freed_memory)
            with self._lock:
                if not self._running:
                    self._watcher = None
                    return
                for running in self._running:
                    reason = self._overdue(running)
                    if reason:
                        running.stop.set(reason)
                    if reason and running.unread_since is not None:
                        # its tasks end, and the thread that waits for the client holds nothing that others need
                        self._release(running)

    def _overdue(self, running: _Running) -> str:
        now, limits, since = time.monotonic(), self._limits, running.unread_since
        if since is not None and now - since > limits.unread_seconds:
            return f"its client took no rows for {limits.unread_seconds:g} s"
        if limits.query_seconds is not None and now - running.started > limits.query_seconds:
            return f"it took more than {limits.query_seconds:g} s"
        return ""


def stop_for(is_cancelled: Callable[[], bool]) -> Stop:
    """What ends the query of a call; ``is_cancelled`` may be asked by the thread of the call only, while it lasts."""
    return Stop(lambda: "its client is gone" if is_cancelled() else "", small_batches=True)
