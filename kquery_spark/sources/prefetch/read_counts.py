"""Counts the bytes and read calls with which a thread reads data files.

Readers add to the counts, and a scan compares the counts before and after a read to get the metrics of its task. Each thread
has its own counts, because several tasks may run in one process.
"""

from __future__ import annotations

import threading
from typing import NamedTuple


class ReadCounts(NamedTuple):
    """The number of stored (compressed) bytes, and the number of reads, which are requests for an object store."""

    nbytes: int
    reads: int

    def since(self, before: ReadCounts) -> ReadCounts:
        """Return the difference to earlier counts."""
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
    """Return the counts of this thread since it started."""
    return ReadCounts(_counts.nbytes, _counts.reads)
