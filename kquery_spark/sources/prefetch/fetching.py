"""Threads that wait for other filesystems, so that what a task needs is on its way before it is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Generic, TypeVar

from kquery_spark.sources.prefetch.read_counts import ReadCounts, count_read, read_counts

_MAX_REQUESTS_AT_ONCE = 32  # of this process

T = TypeVar("T")

Release = Callable[[], None]
"""Lets go of what was fetched; to be called once."""


def nothing_to_release() -> None:
    """The ``Release`` of a source that fetches nothing."""


@cache
def fetching_threads() -> ThreadPoolExecutor:
    """This process's threads for requests. What they run must not wait for one of them."""
    return ThreadPoolExecutor(_MAX_REQUESTS_AT_ONCE, thread_name_prefix="kquery-fetch")


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=fetching_threads.cache_clear)


class InBackground(Generic[T]):
    """A value that a thread finds while others go on. Who first asks for it has made the reads that it took."""

    def __init__(self, find: Callable[[], T]) -> None:
        self._found: Future[tuple[T, ReadCounts]] = fetching_threads().submit(_find, find)
        self._is_counted = False

    @property
    def is_done(self) -> bool:
        """Whether ``result`` waits for nothing."""
        return self._found.done()

    def result(self) -> T:
        """The value once it is there; raises what finding it raised."""
        value, read = self._found.result()
        if not self._is_counted:
            self._is_counted = True
            count_read(read.nbytes, read.reads)
        return value

    def abandon(self, dispose: Callable[[T], None]) -> None:
        """Do without the value, which is disposed of if it was found, or is so later; waits for nothing."""

        def dispose_found(found: Future[tuple[T, ReadCounts]]) -> None:
            if found.exception() is None:
                dispose(found.result()[0])

        if not self._found.cancel():
            self._found.add_done_callback(dispose_found)


def _find(find: Callable[[], T]) -> tuple[T, ReadCounts]:
    """What is found, and what this thread read to find it."""
    before = read_counts()
    return find(), read_counts().since(before)
