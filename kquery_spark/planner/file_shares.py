"""Which splits each task reads, such that rows that meet in a join or a group are read by the same task."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kquery_spark.config.engine import EngineConfig
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.sources.base import Split

_MAX_TASK_IMBALANCE = 1.6  # a task that reads this many times an equal share keeps the others waiting


@dataclass(frozen=True)
class ScanShares:
    """How tasks share the splits of one scan.

    columns: their values decide which task reads a row. splits: of each task.
    """

    columns: tuple[str, ...]
    splits: tuple[tuple[Split, ...], ...]


@dataclass(frozen=True)
class FileShares:
    """How tasks share some scans of a query. Columns at the same position in different scans decide alike.

    bounds: where tasks read ranges of one column, the first key of each range but the first; None where they read buckets.
    buckets: where they read buckets, the task of each.
    """

    scans: NodeMap[ScanShares]
    bounds: tuple[int, ...] | None
    buckets: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes that all tasks read."""
        tasks = (task for scan in self.scans for task in self.scans[scan].splits)
        return sum(split.nbytes for task in tasks for split in task)


def task_counts(nbytes: int, config: EngineConfig) -> Iterator[int]:
    """How many tasks to try: as many as splits of the usual size, then fewer, but one for each task at a time."""
    count = config.parallelism * math.ceil(nbytes / (config.split_bytes * config.parallelism))
    while count >= max(config.parallelism, 2):
        yield count
        count //= 2


def is_even(loads: Sequence[int]) -> bool:
    """Whether no task reads far more than its part of the bytes."""
    return max(loads) <= _MAX_TASK_IMBALANCE * sum(loads) / len(loads)
