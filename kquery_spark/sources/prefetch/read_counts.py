"""Counts what a thread reads of data files: bytes as they are stored, and read calls.

Readers count where they read; a scan compares the counts before and after to know what its task read. A thread has counts
of its own, as several tasks may run in one process.
"""

from __future__ import annotations

import threading
from typing import NamedTuple


class ReadCounts(NamedTuple):
    """Bytes of files, compressed as they are, and the reads that fetched them (of an object store: requests)."""

    nbytes: int
    reads: int

    def since(self, before: ReadCounts) -> ReadCounts:
        """What was read after the counts were ``before``."""
        return ReadCounts(self.nbytes - before.nbytes, self.reads - before.reads)


class _ThreadCounts(threading.local):
    nbytes = 0
    reads = 0


_counts = _ThreadCounts()


def count_read(nbytes: int, reads: int = 1) -> None:
    """Count bytes that this thread has read."""
    _counts.nbytes += nbytes
    _counts.reads += reads


def read_counts() -> ReadCounts:
    """What this thread has read since it began."""
    return ReadCounts(_counts.nbytes, _counts.reads)
