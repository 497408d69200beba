"""Which files each task of a query reads, where the rows that meet in joins and groups are to be read by one task."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kquery_spark.config.engine import EngineConfig
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.sources.base import Split

_MAX_TASK_IMBALANCE = 1.6  # a task that reads this many times an equal share keeps the others waiting


@dataclass(frozen=True)
class FileShares:
    """The splits of some scans by task, and the columns that decide which task reads a row.

    shares: of each scan, for each task. columns: of each scan, in an order in which those of several scans belong together.
    bounds: where tasks read ranges of one column, the first keys of the ranges but the first; None where they read buckets.
    """

    shares: NodeMap[tuple[tuple[Split, ...], ...]]
    columns: NodeMap[tuple[str, ...]]
    bounds: tuple[int, ...] | None

    @property
    def nbytes(self) -> int:
        """Bytes that all tasks read."""
        tasks = (task for scan in self.shares for task in self.shares[scan])
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
