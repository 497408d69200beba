"""Returns memory that ended queries have freed to the operating system."""

from __future__ import annotations

import contextlib
import ctypes
import math
import time

import pyarrow as pa

_BUSY_SECONDS = 5.0
"""Seconds between two releases while queries run. Running queries would soon allocate the released memory again."""


class FreedMemory:
    """Decides when to release memory. Each thread that releases has an instance of its own.

    Arrow's default allocator, mimalloc, releases the memory of threads that have ended from the main thread only; from other
    threads it releases a part. A process that only serves queries therefore also calls this from its main thread.
    """

    def __init__(self) -> None:
        self._ended = 0
        self._last = -math.inf

    def release_if_due(self, ended: int, running: int) -> None:
        """Release memory if queries have ended since the last time. ended: queries that ended so far."""
        now = time.monotonic()
        if ended != self._ended and (not running or now - self._last > _BUSY_SECONDS):
            self._ended, self._last = ended, now
            _release()


def _release() -> None:
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # a C library other than glibc has no malloc_trim
        ctypes.CDLL(None).malloc_trim(0)
