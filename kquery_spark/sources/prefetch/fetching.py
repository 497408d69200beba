"""Runs requests to other filesystems in background threads, so that bytes arrive before a task needs them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Generic, TypeVar

from kquery_spark.sources.prefetch.read_counts import ReadCounts, count_read, read_counts

_MAX_CONCURRENT_REQUESTS = 32  # of this process

T = TypeVar("T")

Release = Callable[[], None]
"""A function that releases fetched bytes. Call it once."""


def nothing_to_release() -> None:
    """Do nothing; the ``Release`` of a source that does not prefetch."""


@cache
def fetching_threads() -> ThreadPoolExecutor:
    """Return this process's pool of threads for requests. A request must not wait for another one, to avoid deadlocks."""
    return ThreadPoolExecutor(_MAX_CONCURRENT_REQUESTS, thread_name_prefix="kquery-fetch")


if hasattr(os, "register_at_fork"):  # a forked child does not have its parent's threads
    os.register_at_fork(after_in_child=fetching_threads.cache_clear)


class InBackground(Generic[T]):
    """A value that a background thread computes. Its reads are counted for the first thread that uses the value."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._future: Future[tuple[T, ReadCounts]] = fetching_threads().submit(_compute, compute)
        self._is_counted = False

    @property
    def is_done(self) -> bool:
        """True if ``result`` returns without waiting."""
        return self._future.done()

    def result(self) -> T:
        """Wait for the value; raises the error that its computation raised."""
        value, read = self._future.result()
        if not self._is_counted:
            self._is_counted = True
            count_read(read.nbytes, read.reads)
        return value

    def abandon(self, dispose: Callable[[T], None]) -> None:
        """Give up the value without waiting for it; ``dispose`` is called with it if it is computed nevertheless."""

        def dispose_value(future: Future[tuple[T, ReadCounts]]) -> None:
            if future.exception() is None:
                dispose(future.result()[0])

        if not self._future.cancel():
            self._future.add_done_callback(dispose_value)


def _compute(compute: Callable[[], T]) -> tuple[T, ReadCounts]:
    """Compute a value; returns it with the reads of this thread that it needed."""
    before = read_counts()
    return compute(), read_counts().since(before)
