"""The cache of a worker process: keeps build sides of broadcast joins between tasks, up to a number of bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kquery_spark.run_control import current_control

# A run that waits for the build of another run checks this often whether it was stopped.
_STOP_POLL_SECONDS = 0.1


class NotShared(Exception):
    """Raised by a ``build`` function whose value only its own run can use.

    Runs that wait for this build then build their own values, at the same time.
    """


@dataclass
class _Entry:
    value: Any
    size: int
    last_use: int


@dataclass
class _Build:
    """A build in progress. The run that builds the value holds the lock; other runs wait for it.

    is_shared: False once the build has raised ``NotShared``. The waiting runs then build without the lock.
    """

    lock: threading.Lock
    is_shared: bool = True


@contextmanager
def _held_by_this_run(lock: threading.Lock) -> Iterator[None]:
    """Hold the lock. While another run holds it, wait, but only until this run is stopped."""
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
    """An LRU cache. Each value is built only once, even if two threads request it at the same time.

    There is one lock per key for building, and a common lock for the dictionaries, which is never held during a build. Keys
    are whole plans, and hashing one takes longer than everything else here, so lookups are as few as possible.
    """

    def __init__(self) -> None:
        self._entries: dict[object, _Entry] = {}
        self._uses = 0
        self._builds: dict[object, _Build] = {}
        self._lock = threading.Lock()

    def get(self, key: object, build: Callable[[], tuple[Any, int]], limit: int) -> Any:
        """Return the cached value. If there is none, ``build`` returns a new one and its size in bytes.

        limit: the most bytes to cache afterwards. The newest value remains even if it alone is larger, except for 0, which
        disables the cache. Errors of ``build`` are raised, and nothing is cached.
        """
        with self._lock:
            entry = self._touch(key)
            if entry is not None:
                return entry.value
            shared_build = self._builds.setdefault(key, _Build(threading.Lock()))
        with _held_by_this_run(shared_build.lock):
            with self._lock:
                entry = self._touch(key)
                if entry is not None:
                    return entry.value
            if shared_build.is_shared:
                return self._build(key, build, limit, shared_build)
        return build()[0]

    def _build(
        self, key: object, build: Callable[[], tuple[Any, int]], limit: int, shared_build: _Build
    ) -> Any:
        """Build and cache a value. The caller holds the lock of the build."""
        try:
            value, size = build()
        except BaseException as error:
            shared_build.is_shared = not isinstance(error, NotShared)
            with self._lock:
                self._builds.pop(key, None)
            raise
        with self._lock:
            self._uses += 1
            self._entries[key] = _Entry(value, size, self._uses)
            self._builds.pop(key, None)
            # Remove the least recently used values. The newest one stays even if it alone exceeds the limit:
            # ``limit > 0`` counts as 1 entry. With the limit 0, it counts as 0, so nothing stays.
            while len(self._entries) > (limit > 0) and self._held() > limit:
                self._evict_least_recently_used()
        return value

    def _touch(self, key: object) -> _Entry | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._uses += 1
            entry.last_use = self._uses
        return entry

    def _evict_least_recently_used(self) -> None:
        oldest = min(self._entries.items(), key=lambda item: item[1].last_use)[0]
        del self._entries[oldest]

    def _held(self) -> int:
        return sum(entry.size for entry in self._entries.values())

    def retained_bytes(self) -> int:
        """Return the bytes of all values, according to their builders."""
        with self._lock:
            return self._held()

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()


_WORKER = WorkerCache()


def worker_cache() -> WorkerCache:
    """Return the cache of this process."""
    return _WORKER
