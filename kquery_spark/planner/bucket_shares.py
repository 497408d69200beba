"""Bucketed inputs: tasks read whole buckets, so that joins and groups by the buckets' columns need no shuffle.

A task reads the same buckets of all inputs, several where there are more buckets than tasks. Of inputs with 8 and 4 buckets
those go together whose numbers are equal modulo 4, as Spark coalesces them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kquery_spark.config.engine import EngineConfig
from kquery_spark.logical import LogicalPlan, Scan, walk_plan
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.pruning import sized_splits
from kquery_spark.planner.file_shares import FileShares, is_even, task_counts
from kquery_spark.planner.key_classes import key_classes
from kquery_spark.sources.base import Split
from kquery_spark.sources.bucketing import Bucketing


@dataclass(frozen=True)
class _Bucketed:
    scan: Scan
    bucketing: Bucketing
    splits: tuple[Split, ...]

    @property
    def nbytes(self) -> int:
        return sum(split.nbytes for split in self.splits)

    def bucket(self, split: Split, modulus: int) -> int:
        """The bucket of a split, of ``modulus`` ones."""
        return self.bucketing.files[split.file] % modulus


def find_buckets(plan: LogicalPlan, config: EngineConfig) -> FileShares | None:
    """The buckets that spare the most bytes a shuffle; None where no input is bucketed, or too few tasks would have work."""
    candidates = [(sum(m.nbytes for m in members), members, count) for members, count in _candidates(plan)]
    for nbytes, members, count in sorted(candidates, key=lambda candidate: -candidate[0]):
        shares = _shares(members, nbytes, count, config) if nbytes > config.small_bytes else None
        if shares is not None:
            return shares
    return None


def _candidates(plan: LogicalPlan) -> Iterator[tuple[list[_Bucketed], int]]:
    """Inputs whose buckets go together, and how many buckets all of them can be cut into."""
    if not any(isinstance(node, Scan) and node.source.bucketing is not None for node in walk_plan(plan)):
        return
    classes = key_classes(plan)
    by_classes: dict[tuple[int, ...], list[_Bucketed]] = defaultdict(list)
    for scan in classes.scans():
        bucketing = scan.source.bucketing
        key = None if bucketing is None else classes.of_columns(scan, bucketing.spec.columns)
        if bucketing is not None and key is not None:
            splits = sized_splits(scan.source, scan.filters, scan.schema.names)
            by_classes[key].append(_Bucketed(scan, bucketing, tuple(splits)))
    for members in by_classes.values():
        for count in sorted({member.bucketing.spec.count for member in members}, reverse=True):
            yield [member for member in members if member.bucketing.spec.count % count == 0], count


def _shares(
    members: Sequence[_Bucketed], nbytes: int, buckets: int, config: EngineConfig
) -> FileShares | None:
    """As many tasks as sizes ask for, if there are buckets for them of about equal sizes."""
    loads = [0] * buckets
    for member in members:
        for split in member.splits:
            loads[member.bucket(split, buckets)] += split.nbytes
    for count in task_counts(nbytes, config):
        tasks = _tasks(loads, count)
        if count <= buckets and is_even(_loads_of_tasks(loads, tasks, count)):
            return _file_shares(members, tasks, count)
    return None


def _tasks(loads: Sequence[int], count: int) -> list[int]:
    """The task of each bucket: the largest first, each to the task with the fewest bytes."""
    tasks, done = [0] * len(loads), [0] * count
    for bucket in sorted(range(len(loads)), key=lambda i: -loads[i]):
        tasks[bucket] = done.index(min(done))
        done[tasks[bucket]] += loads[bucket]
    return tasks


def _loads_of_tasks(loads: Sequence[int], tasks: Sequence[int], count: int) -> list[int]:
    done = [0] * count
    for load, task in zip(loads, tasks, strict=True):
        done[task] += load
    return done


def _file_shares(members: Sequence[_Bucketed], tasks: Sequence[int], count: int) -> FileShares:
    shares = FileShares(NodeMap(), NodeMap(), None)
    for member in members:
        parts: list[list[Split]] = [[] for _ in range(count)]
        for split in member.splits:
            parts[tasks[member.bucket(split, len(tasks))]].append(split)
        shares.shares[member.scan] = tuple(map(tuple, parts))
        shares.columns[member.scan] = member.bucketing.spec.columns
    return shares
