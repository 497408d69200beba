"""Inputs clustered on a join key: pairing their row groups by key range, so that no row needs to move.

Files are often written in key order (orders and their lines by order key). Then the footers' minima and maxima tell which
row groups can meet in a join. One set of key ranges is chosen for a query. Each task reads, of every clustered input, the
row groups that overlap its range, and of those on the edge only the rows inside it, so joins and groupings on the key are
local.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kquery_spark.config.engine import EngineConfig
from kquery_spark.expr import Expr
from kquery_spark.logical import LogicalPlan, Scan, origin
from kquery_spark.logical.node_map import NodeMap
from kquery_spark.logical.pruning import comparable, sized_splits
from kquery_spark.planner.file_shares import FileShares, ScanShares, is_even, task_counts
from kquery_spark.planner.key_classes import KeyClasses
from kquery_spark.sources.base import ColumnRange, Split
from kquery_spark.types import names as t

_MAX_OVERLAP_SHARE = 0.3  # edge row groups are read twice; more than this share of the input is not worth it
_MAX_SMALL_OVERLAP_SHARE = 0.1  # of all bytes; so much may be read twice of an input that is not the largest


@dataclass(frozen=True)
class _Clustered:
    scan: Scan
    column: str
    splits: tuple[tuple[int, int, Split], ...]  # lowest key, highest key, split

    @property
    def nbytes(self) -> int:
        return sum(s.nbytes for _, _, s in self.splits)


def find_ranges(classes: KeyClasses, config: EngineConfig) -> FileShares | None:
    """The ranges that save the most shuffled bytes, or None when no join or grouping key is clustered."""
    candidates = []
    for members in classes.classes():
        clustered = [c for c in (_clustered(scan, column) for scan, column in members) if c is not None]
        if clustered:
            candidates.append((sum(c.nbytes for c in clustered), clustered))
    for nbytes, clustered in sorted(candidates, key=lambda c: -c[0]):
        ranges = _cut(clustered, nbytes, config) if nbytes > config.small_bytes else None
        if ranges is not None:
            return ranges
    return None


def ranges_of(plan: LogicalPlan, key: Expr, config: EngineConfig) -> FileShares | None:
    """The ranges of one scan's column that an output column is a copy of; None when that scan is not clustered by it."""
    scanned = origin(plan, key)
    clustered = None if scanned is None else _clustered(*scanned)
    return None if clustered is None else _cut([clustered], clustered.nbytes, config)


def _clustered(scan: Scan, column: str) -> _Clustered | None:
    """The scan's splits with their key ranges, when the key is an integer without NULLs and every split knows its range."""
    dtype = scan.source.schema.field(column).type
    if not (t.is_integral(dtype) or dtype == t.DATE):
        return None
    splits = []
    for split in sized_splits(scan.source, scan.filters, scan.schema.names):
        ends = _ends(scan.source.ranges(split, column), dtype)
        if ends is None:
            return None
        splits.append((*ends, split))
    return _Clustered(scan, column, tuple(sorted(splits, key=lambda x: x[:2]))) if splits else None


def _ends(statistics: ColumnRange | None, dtype: pa.DataType) -> tuple[int, int] | None:
    """The lowest and the highest key of a split; None if they are not known or a key may be NULL."""
    if statistics is None or statistics.nulls != 0 or statistics.low is None:
        return None
    low, high = comparable(statistics.low, dtype), comparable(statistics.high, dtype)
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def _cut(members: list[_Clustered], nbytes: int, config: EngineConfig) -> FileShares | None:
    """Boundaries from the largest input, as many as sizes ask for and row groups allow; what they do not fit is left out."""
    largest = max(members, key=lambda m: m.nbytes)
    best: list[_Clustered] = []
    cuts: list[int] = []
    for count in task_counts(nbytes, config):
        bounds = _boundaries(largest, count)
        fitting = [m for m in members if _fits(m, bounds, m is largest, nbytes)]
        if (
            _keeps_busy(largest, bounds, config)
            and any(m is largest for m in fitting)
            and len(fitting) > len(best)
        ):
            best, cuts = fitting, bounds
        if len(best) == len(members):
            break
    return _ranges(best, cuts) if best else None


def _keeps_busy(largest: _Clustered, bounds: Sequence[int], config: EngineConfig) -> bool:
    """Whether the ranges give every core about as much of the largest input to read."""
    return len(bounds) + 1 >= config.parallelism and is_even(_loads(largest, bounds))


def _fits(member: _Clustered, bounds: Sequence[int], is_largest: bool, all_bytes: int) -> bool:
    """Whether reading an input by these ranges reads little of it twice."""
    twice = sum(_loads(member, bounds)) - member.nbytes
    return twice <= _MAX_OVERLAP_SHARE * member.nbytes or (
        not is_largest and twice < _MAX_SMALL_OVERLAP_SHARE * all_bytes
    )


def _ranges(members: Sequence[_Clustered], bounds: Sequence[int]) -> FileShares:
    ranges = FileShares(NodeMap(), tuple(bounds))
    for member in members:
        ranges.scans[member.scan] = ScanShares((member.column,), _shares(member, bounds))
    return ranges


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
    """Per range, the splits that overlap it; a split that crosses a boundary gets the rows to retain."""
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
