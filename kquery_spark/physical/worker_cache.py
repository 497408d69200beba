"""What a worker process keeps between tasks: build sides of replicated joins, bounded by bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class WorkerCache:
    """Least recently used values by key; one build per key even when two threads ask at once."""

    def __init__(self) -> None:
        self._entries: OrderedDict[object, tuple[Any, int]] = OrderedDict()
        self._locks: dict[object, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: object, build: Callable[[], tuple[Any, int]], limit: int) -> Any:
        """The cached value, or the one ``build`` makes together with its size in bytes.

        ``limit``: bytes to keep at most after that; the newest value stays even when it alone is larger, unless
        nothing is to be kept at all (0).
        """
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            with self._lock:
                if key in self._entries:
                    return self._entries[key][0]
            value, size = build()
            with self._lock:
                self._entries[key] = (value, size)
                self._locks.pop(key, None)
                while len(self._entries) > (limit > 0) and sum(s for _, s in self._entries.values()) > limit:
                    self._entries.popitem(last=False)
            return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()


_WORKER = WorkerCache()


def worker_cache() -> WorkerCache:
    """This process's cache."""
    return _WORKER
