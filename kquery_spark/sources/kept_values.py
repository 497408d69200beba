"""Values that this process keeps by a key, bounded by what they take in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """Something whose size is known."""

    @property
    def nbytes(self) -> int:
        """What it takes in memory, about."""
        ...


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Sized)


class KeptValues(Generic[K, V]):
    """Values by key, of which those that were not used for longest go first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._nbytes = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """What all of them take."""
        return self._nbytes

    def get(self, key: K) -> V | None:
        """The value of a key, if it is kept."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Keep a value, the newest even when it alone takes more than all may."""
        with self._lock:
            self._forget(key)
            self._values[key] = value
            self._nbytes += value.nbytes
            while self._nbytes > self._max_bytes and len(self._values) > 1:
                self._nbytes -= self._values.popitem(last=False)[1].nbytes

    def forget(self, key: K) -> None:
        """Let go of the value of a key, if it is kept."""
        with self._lock:
            self._forget(key)

    def _forget(self, key: K) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self._nbytes -= value.nbytes
