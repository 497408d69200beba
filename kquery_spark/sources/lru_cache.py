"""A cache of this process that is bounded by bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """A value that knows its size."""

    @property
    def nbytes(self) -> int:
        """Approximate size in memory."""
        ...


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Sized)


class LruCache(Generic[K, V]):
    """Thread-safe LRU cache with a byte limit. The newest value stays even if it alone exceeds the limit."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._nbytes = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Total size of the cached values."""
        return self._nbytes

    def get(self, key: K) -> V | None:
        """Return the cached value of a key and mark it as used, or None."""
        with self._lock:
            # Not get and move_to_end: that would compare the keys, which may be whole plans, twice.
            value = self._values.pop(key, None)
            if value is not None:
                self._values[key] = value
            return value

    def put(self, key: K, value: V) -> None:
        """Add or replace a value and evict the least recently used values until the rest fits."""
        with self._lock:
            self._forget(key)
            self._values[key] = value
            self._nbytes += value.nbytes
            while self._nbytes > self._max_bytes and len(self._values) > 1:
                self._nbytes -= self._values.popitem(last=False)[1].nbytes

    def forget(self, key: K) -> None:
        """Remove the value of a key, if it is cached."""
        with self._lock:
            self._forget(key)

    def _forget(self, key: K) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self._nbytes -= value.nbytes
