"""Adds values to those metrics of a Spark task that Python workers can report."""

from __future__ import annotations

from pyspark import shuffle


def add_spilled_bytes(nbytes: int) -> None:
    """Count bytes as spilled by the task in this worker; the same number counts for memory and for disk."""
    shuffle.MemoryBytesSpilled += nbytes
    shuffle.DiskBytesSpilled += nbytes
