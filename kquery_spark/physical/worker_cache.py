"""What a worker process keeps between tasks: build sides of replicated joins, bounded by bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kquery_spark.run_control import current_control

_STOP_POLL_SECONDS = 0.1  # how often a run that waits for another one's build looks whether it is stopped


@dataclass
class _Entry:
    value: Any
    size: int
    last_use: int


@contextmanager
def _held_by_this_run(lock: threading.Lock) -> Iterator[None]:
    """The lock, for which another run's build is waited for only as long as this run goes on."""
    control = current_control()
    if control is None:
        lock.acquire()
    else:
        while not lock.acquire(timeout=_STOP_POLL_SECONDS):
            control.check()
    try:
        yield
    finally:
        lock.release()


class WorkerCache:
    """Least recently used values by key; one build per key even when two threads request it at once.

    Keys are whole plans, whose hash takes many times as long as anything else here: each is looked up once.
    """

    def __init__(self) -> None:
        self._entries: dict[object, _Entry] = {}
        self._uses = 0
        self._locks: dict[object, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: object, build: Callable[[], tuple[Any, int]], limit: int) -> Any:
        """The cached value, or the one ``build`` makes together with its size in bytes.

        ``limit``: bytes to keep at most after that; the newest value stays even when it alone is larger, unless
        nothing is to be kept at all (0).
        """
        with self._lock:
            entry = self._used(key)
            if entry is not None:
                return entry.value
            lock = self._locks.setdefault(key, threading.Lock())
        with _held_by_this_run(lock):
            with self._lock:
                entry = self._used(key)
                if entry is not None:
                    return entry.value
            try:
                value, size = build()
            except BaseException:
                with self._lock:
                    self._locks.pop(key, None)
                raise
            with self._lock:
                self._uses += 1
                self._entries[key] = _Entry(value, size, self._uses)
                self._locks.pop(key, None)
                while len(self._entries) > (limit > 0) and self._held() > limit:
                    self._forget_one()
            return value

    def _used(self, key: object) -> _Entry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._uses += 1
            entry.last_use = self._uses
        return entry

    def _forget_one(self) -> None:
        oldest = min(self._entries.items(), key=lambda item: item[1].last_use)[0]
        del self._entries[oldest]

    def _held(self) -> int:
        return sum(entry.size for entry in self._entries.values())

    def retained_bytes(self) -> int:
        """What all values take, as their builders said."""
        with self._lock:
            return self._held()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()


_WORKER = WorkerCache()


def worker_cache() -> WorkerCache:
    """This process's cache."""
    return _WORKER
