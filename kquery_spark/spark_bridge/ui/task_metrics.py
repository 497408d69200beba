"""Adds to Spark's own metrics of a task, those that Python workers can report."""

from __future__ import annotations

from pyspark import shuffle


def add_spilled_bytes(nbytes: int) -> None:
    """Count bytes as spilled by the task that runs in this worker: in its memory, and on disk as they were there."""
    shuffle.MemoryBytesSpilled += nbytes
    shuffle.DiskBytesSpilled += nbytes
