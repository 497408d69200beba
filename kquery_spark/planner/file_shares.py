"""File shares: which splits each task reads, chosen so that matching rows of a join or a group are in the same task.

There are two ways to choose them: by key ranges (``copartition``) and by buckets (``bucket_shares``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kquery_spark.config.engine import EngineConfig
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.sources.base import Split

# The most that a task may read, in multiples of an equal share. The query waits for its slowest task.
_MAX_TASK_IMBALANCE = 1.6


@dataclass(frozen=True)
class ScanShares:
    """How tasks share one scan. columns: their values decide which task reads a row. splits: the splits of each task."""

    columns: tuple[str, ...]
    splits: tuple[tuple[Split, ...], ...]


@dataclass(frozen=True)
class FileShares:
    """How tasks share some scans of a query. Equal values of the scans' ``columns`` (by position) go to the same task.

    bounds: for key ranges, the first key of each range except the first range; None for buckets. buckets: for buckets, the
    task of each bucket.
    """

    scans: NodeMap[ScanShares]
    bounds: tuple[int, ...] | None
    buckets: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """The bytes that all tasks read."""
        tasks = (task for scan in self.scans for task in self.scans[scan].splits)
        return sum(split.nbytes for task in tasks for split in task)


def task_counts(nbytes: int, config: EngineConfig) -> Iterator[int]:
    """Yield numbers of tasks to try: first one per ``split_bytes``, then half of that, down to the number of cores.

    The first number is a multiple of the cores, so that all cores finish at about the same time.
    """
    count = config.parallelism * math.ceil(nbytes / (config.split_bytes * config.parallelism))
    while count >= max(config.parallelism, 2):
        yield count
        count //= 2


def is_even(loads: Sequence[int]) -> bool:
    """True if no task reads far more than an equal share of the bytes."""
    return max(loads) <= _MAX_TASK_IMBALANCE * sum(loads) / len(loads)
