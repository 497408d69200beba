"""Co-located joins of bucketed tables: each task reads the same buckets of all inputs, so no row has to be shuffled.

Two tables bucketed by their join key into 8 buckets have equal keys in buckets of the same number. With 4 tasks, each task
reads two buckets of both tables, and all matching rows are in one task. If the second table has only 4 buckets, bucket
number b of the first table matches bucket b % 4 of the second, because hash % 8 % 4 is hash % 4 (Spark coalesces buckets
the same way).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kquery_spark.cached_property import cached_property
from kquery_spark.config.engine import EngineConfig
from kquery_spark.logical import Scan
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.pruning import sized_splits
from kquery_spark.planner.file_shares import FileShares, ScanShares, is_even, task_counts
from kquery_spark.planner.key_classes import KeyClasses
from kquery_spark.sources.base import Split
from kquery_spark.sources.bucketing import Bucketing


@dataclass(frozen=True)
class _BucketedScan:
    """A scan of a bucketed table, and its splits after pruning."""

    scan: Scan
    bucketing: Bucketing
    splits: tuple[Split, ...]

    def in_buckets(self, count: int) -> list[list[Split]]:
        """Return the splits of each of ``count`` buckets. ``count`` has to divide the table's number of buckets."""
        buckets: list[list[Split]] = [[] for _ in range(count)]
        for split in self.splits:
            buckets[self.bucketing.files[split.file] % count].append(split)
        return buckets


@dataclass(frozen=True)
class _Candidate:
    """Scans that could be co-located, and the number of buckets into which all of them are divided."""

    members: Sequence[_BucketedScan]
    buckets: int

    @cached_property
    def loads(self) -> list[int]:
        """The bytes of each bucket, all members together."""
        together = zip(*(member.in_buckets(self.buckets) for member in self.members), strict=True)
        return [sum(split.nbytes for splits in bucket for split in splits) for bucket in together]


def find_buckets(classes: KeyClasses, config: EngineConfig) -> FileShares | None:
    """Return shares for the bucketed scans with the most bytes, because these bytes need no shuffle.

    None if no input is bucketed, or if the buckets cannot keep enough tasks equally busy.
    """
    # The candidate with the most bytes saves the largest shuffle. Small inputs are not worth the restriction.
    for candidate in sorted(_candidates(classes), key=lambda candidate: -sum(candidate.loads)):
        shares = _shares(candidate, config) if sum(candidate.loads) > config.small_bytes else None
        if shares is not None:
            return shares
    return None


def _candidates(classes: KeyClasses) -> Iterator[_Candidate]:
    """Yield the scans whose bucket columns the query equates, once for each bucket count that occurs among them."""
    by_classes: dict[tuple[int, ...], list[_BucketedScan]] = defaultdict(list)
    for scan in classes.scans():
        bucketing = scan.source.bucketing
        key = None if bucketing is None else classes.of_columns(scan, bucketing.spec.columns)
        if bucketing is not None and key is not None:
            splits = sized_splits(scan.source, scan.filters, scan.schema.names)
            by_classes[key].append(_BucketedScan(scan, bucketing, tuple(splits)))
    for members in by_classes.values():
        for count in sorted({member.bucketing.spec.count for member in members}, reverse=True):
            # A table with 8 buckets can be read as 4, but not the other way round. Each count that occurs is a candidate:
            # a larger one has room for more tasks, a smaller one includes more tables.
            yield _Candidate([m for m in members if m.bucketing.spec.count % count == 0], count)


def _shares(candidate: _Candidate, config: EngineConfig) -> FileShares | None:
    """Return shares for the first number of tasks for which the buckets can be divided evenly; None if there is none."""
    for count in task_counts(sum(candidate.loads), config):
        # A task needs at least one whole bucket.
        if count > candidate.buckets:
            continue
        tasks = _assign_buckets(candidate.loads, count)
        if is_even([sum(candidate.loads[bucket] for bucket in task) for task in tasks]):
            return _file_shares(candidate, tasks)
    return None


def _assign_buckets(loads: Sequence[int], count: int) -> list[list[int]]:
    """Return the buckets of each task. Each bucket, largest first, goes to the task with the fewest bytes so far."""
    tasks: list[list[int]] = [[] for _ in range(count)]
    assigned_bytes = [0] * count
    for bucket in sorted(range(len(loads)), key=lambda i: -loads[i]):
        task = assigned_bytes.index(min(assigned_bytes))
        tasks[task].append(bucket)
        assigned_bytes[task] += loads[bucket]
    return tasks


def _file_shares(candidate: _Candidate, tasks: Sequence[Sequence[int]]) -> FileShares:
    task_of = {bucket: number for number, task in enumerate(tasks) for bucket in task}
    shares = FileShares(NodeMap(), None, tuple(task_of[bucket] for bucket in range(candidate.buckets)))
    for member in candidate.members:
        buckets = member.in_buckets(candidate.buckets)
        splits = tuple(tuple(split for bucket in task for split in buckets[bucket]) for task in tasks)
        shares.scans[member.scan] = ScanShares(member.bucketing.spec.columns, splits)
    return shares
