"""Inputs clustered on a join key: pairing their row groups by key range, so that no row needs to move.

Files are often written in key order (orders and their lines by order key). Then the footers' minima and maxima tell which
row groups can meet in a join. One set of key ranges is chosen for a query; each task reads, of every
clustered input, the row
groups that overlap its range, and of those on the edge only the rows inside it. Joins and groupings on the key are local.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Expr
from kquery_spark.logical import Aggregate, Join, LogicalPlan, Scan, origin, walk_plan
from kquery_spark.logical.pruning import comparable, sized_splits
from kquery_spark.sources.base import Split
from kquery_spark.types import names as t

_WORTH_OVERLAP = 0.3  # edge row groups are read twice; more than this share of the input is not worth it
_UNEVEN = 1.6  # a task that reads this many times an equal share keeps the others waiting

_Place = tuple[int, str]  # id of a Scan, column of its source


@dataclass(frozen=True)
class Ranges:
    """Key ranges for some scans: ``shares`` are each scan's splits per task, ``columns`` its key column.

    bounds: the first keys of the ranges after the first.
    """

    shares: dict[int, tuple[tuple[Split, ...], ...]]
    columns: dict[int, str]
    bounds: tuple[int, ...]


@dataclass(frozen=True)
class _Clustered:
    scan: Scan
    column: str
    splits: tuple[tuple[int, int, Split], ...]  # lowest key, highest key, split

    @property
    def nbytes(self) -> int:
        return sum(s.nbytes for _, _, s in self.splits)


def find_ranges(plan: LogicalPlan, config: EngineConfig) -> Ranges | None:
    """The ranges that spare the most bytes a shuffle, or None when no join or grouping key is clustered."""
    candidates = []
    for members in _key_classes(plan):
        found = [c for c in (_clustered(scan, column) for scan, column in members) if c is not None]
        if found:
            candidates.append((sum(c.nbytes for c in found), found))
    for size, found in sorted(candidates, key=lambda c: -c[0]):
        ranges = _cut(found, size, config) if size > config.small_bytes else None
        if ranges is not None:
            return ranges
    return None


def ranges_of(plan: LogicalPlan, key: Expr, config: EngineConfig) -> Ranges | None:
    """The ranges of one scan's column that an output column is a copy of; None when that scan is not clustered by it."""
    found = origin(plan, key)
    clustered = None if found is None else _clustered(*found)
    return None if clustered is None else _cut([clustered], clustered.nbytes, config)


def _key_classes(plan: LogicalPlan) -> list[list[tuple[Scan, str]]]:
    """Scan columns that equal each other by join keys, and single ones that are grouped by; at most one column a scan."""
    parent: dict[_Place, _Place] = {}
    scans: dict[int, Scan] = {}

    def find(x: _Place) -> _Place:
        while parent.setdefault(x, x) != x:
            x = parent[x]
        return x

    def place(node: LogicalPlan, expr: Expr) -> _Place | None:
        found = origin(node, expr)
        return None if found is None else (id(found[0]), found[1])

    for node in walk_plan(plan):
        if isinstance(node, Scan):
            scans[id(node)] = node
        elif isinstance(node, Join):
            for key in node.keys:
                a, b = place(node.left, key.left), place(node.right, key.right)
                if a is not None and b is not None:
                    parent[find(a)] = find(b)
        elif isinstance(node, Aggregate):
            for named in node.keys:
                a = place(node.child, named.expr)
                if a is not None:
                    find(a)
    classes: dict[_Place, dict[int, str]] = {}
    for scan_id, column in parent:
        classes.setdefault(find((scan_id, column)), {}).setdefault(scan_id, column)
    return [[(scans[i], c) for i, c in members.items()] for members in classes.values()]


def _clustered(scan: Scan, column: str) -> _Clustered | None:
    """The scan's splits with their key ranges, when the key is an integer without NULLs and every split knows its range."""
    dtype = scan.source.schema.field(column).type
    if not (t.is_integral(dtype) or dtype == t.DATE):
        return None
    found = []
    for split in sized_splits(scan.source, scan.filters, scan.schema.names):
        known = scan.source.ranges(split, column)
        if known is None or known.nulls != 0 or known.low is None:
            return None
        low, high = comparable(known.low, dtype), comparable(known.high, dtype)
        if not isinstance(low, int) or not isinstance(high, int):
            return None
        found.append((low, high, split))
    return _Clustered(scan, column, tuple(sorted(found, key=lambda x: (x[0], x[1])))) if found else None


def _cut(members: list[_Clustered], size: int, config: EngineConfig) -> Ranges | None:
    """Boundaries from the largest input, as many as sizes ask for and row groups allow; what they do not fit is left out."""
    largest = max(members, key=lambda m: m.nbytes)
    count = config.parallelism * math.ceil(size / (config.split_bytes * config.parallelism))
    best: list[_Clustered] = []
    cuts: list[int] = []
    while count >= max(config.parallelism, 2) and len(best) < len(members):
        bounds = _boundaries(largest, count)
        fitting = []
        for member in members:
            extra = sum(_loads(member, bounds)) - member.nbytes
            if extra <= _WORTH_OVERLAP * member.nbytes or (member is not largest and extra < 0.1 * size):
                fitting.append(member)
        enough = len(bounds) + 1 >= config.parallelism and any(m is largest for m in fitting)
        if enough and _even(_loads(largest, bounds)) and len(fitting) > len(best):
            best, cuts = fitting, bounds
        count //= 2
    if not best:
        return None
    shares = {id(m.scan): _shares(m, cuts) for m in best}
    return Ranges(shares, {id(m.scan): m.column for m in best}, tuple(cuts))


def _even(loads: Sequence[int]) -> bool:
    """Whether no task reads far more than its part of the bytes: splits that all span the same keys end up in one."""
    return max(loads) <= _UNEVEN * sum(loads) / len(loads)


def _boundaries(member: _Clustered, count: int) -> list[int]:
    """Keys that cut the input's bytes into about ``count`` equal parts; each is the first key of its part."""
    target = member.nbytes / count
    bounds: list[int] = []
    done = 0
    for low, _, split in member.splits:
        if (
            done >= target * (len(bounds) + 1) - split.nbytes / 2
            and (not bounds or low > bounds[-1])
            and done
        ):
            bounds.append(low)
        done += split.nbytes
    return bounds[: count - 1]


def _overlap(low: int, high: int, bounds: Sequence[int]) -> range:
    """The ranges that keys from ``low`` to ``high`` are in."""
    return range(bisect_right(bounds, low), bisect_right(bounds, high) + 1)


def _loads(member: _Clustered, bounds: Sequence[int]) -> list[int]:
    """Bytes that each range reads."""
    loads = [0] * (len(bounds) + 1)
    for low, high, split in member.splits:
        for index in _overlap(low, high, bounds):
            loads[index] += split.nbytes
    return loads


def _shares(member: _Clustered, bounds: Sequence[int]) -> tuple[tuple[Split, ...], ...]:
    """Per range, the splits that overlap it; those that stick out are told which rows to keep."""
    edges: list[int | None] = [None, *bounds, None]
    parts: list[list[Split]] = [[] for _ in range(len(bounds) + 1)]
    for low, high, split in member.splits:
        ranges = _overlap(low, high, bounds)
        for index in ranges:
            inside = len(ranges) == 1
            parts[index].append(
                split if inside else replace(split, bounds=(member.column, edges[index], edges[index + 1]))
            )
    return tuple(map(tuple, parts))
