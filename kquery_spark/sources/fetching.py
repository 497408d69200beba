"""What a split needs is asked for before the split is read, by threads that wait for other filesystems."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from types import TracebackType
from typing import NamedTuple

from kquery_spark.sources.read_counts import ReadCounts, count_read, read_counts

_MAX_REQUESTS_AT_ONCE = 32  # of this process

Release = Callable[[], None]
"""Lets go of what was fetched."""


@cache
def fetching_threads() -> ThreadPoolExecutor:
    """This process's threads for requests. What they run must not wait for one of them."""
    return ThreadPoolExecutor(_MAX_REQUESTS_AT_ONCE, thread_name_prefix="kquery-fetch")


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=fetching_threads.cache_clear)


class Fetching:
    """A split of which columns are being fetched. It is read inside of a ``with`` block, which lets go of them at its end.

    begin: opens the file and asks for the columns. It runs in a thread of its own, as looking at a footer takes a while,
    too; its errors are raised at the beginning of the block.
    """

    def __init__(self, begin: Callable[[], Release]) -> None:
        self._begun: Future[_Begun] = fetching_threads().submit(_begin, begin)

    def __enter__(self) -> Fetching:
        try:
            read = self._begun.result().read
        except BaseException:  # of an interrupt, too
            self.close()
            raise
        count_read(read.nbytes, read.reads)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what is fetched, or is on its way; waits for nothing."""
        if not self._begun.cancel():
            self._begun.add_done_callback(_release)


class _Begun(NamedTuple):
    """What a fetch is at its beginning: what lets go of it, and what was read to begin it, such as a footer."""

    release: Release
    read: ReadCounts


def _begin(begin: Callable[[], Release]) -> _Begun:
    before = read_counts()
    return _Begun(begin(), read_counts().since(before))


def _release(begun: Future[_Begun]) -> None:
    if begun.exception() is None:
        begun.result().release()
