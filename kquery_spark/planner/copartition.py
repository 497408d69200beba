"""Co-located joins of clustered files: each task reads one range of the join key from all inputs, so no row is shuffled.

Files are often written in the order of a key, for example orders and lines by the order key. The footers then show which row
groups can contain matching rows:

    orders   row groups   1-1000   1001-2000   2001-3000   3001-4000
    lines    row groups   1-700    690-1500    1501-2600   2601-4000

The boundaries are taken from the largest input. For two tasks and orders as the largest input, the boundary is 2001:

    task 1 (keys below 2001)   orders 1-1000, 1001-2000      lines 1-700, 690-1500, 1501-2600
    task 2 (keys from 2001)    orders 2001-3000, 3001-4000   lines 1501-2600, 2601-4000

The row group 1501-2600 of lines crosses the boundary, so both tasks read it, and each keeps only the rows in its range.
Joins and groupings on the key are then local to a task. The price is that such row groups are read twice, which
``_reads_little_twice`` limits. One set of key ranges is chosen for the whole query.
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

_MAX_OVERLAP_SHARE = 0.3  # the largest share of an input's bytes that may be read twice
_MAX_SMALL_OVERLAP_SHARE = 0.1  # inputs that are not the largest may also read this share of all bytes twice


@dataclass(frozen=True)
class _ClusteredScan:
    """A scan whose splits have known key ranges. ``splits`` are (lowest key, highest key, split), sorted by the keys."""

    scan: Scan
    column: str
    splits: tuple[tuple[int, int, Split], ...]

    @property
    def nbytes(self) -> int:
        return sum(s.nbytes for _, _, s in self.splits)


def find_ranges(classes: KeyClasses, config: EngineConfig) -> FileShares | None:
    """Return ranges for the key whose clustered scans have the most bytes; None if no join or grouping key is clustered."""
    candidates = []
    # Each class of equal columns is a candidate for the ranges, with those of its scans that are clustered by it.
    for members in classes.classes():
        scans = (_clustered_scan(scan, column) for scan, column in members)
        clustered = [c for c in scans if c is not None]
        if clustered:
            candidates.append((sum(c.nbytes for c in clustered), clustered))
    for nbytes, clustered in sorted(candidates, key=lambda c: -c[0]):
        ranges = _choose_ranges(clustered, nbytes, config) if nbytes > config.small_bytes else None
        if ranges is not None:
            return ranges
    return None


def ranges_of(plan: LogicalPlan, key: Expr, config: EngineConfig) -> FileShares | None:
    """Return ranges of the scan column that an output column is a copy of; None if its scan is not clustered by it."""
    scanned = origin(plan, key)
    clustered = None if scanned is None else _clustered_scan(*scanned)
    return None if clustered is None else _choose_ranges([clustered], clustered.nbytes, config)


def _clustered_scan(scan: Scan, column: str) -> _ClusteredScan | None:
    """Return the scan with its key ranges; None unless the key is an integer without NULLs and with statistics."""
    dtype = scan.source.schema.field(column).type
    if not (t.is_integral(dtype) or dtype == t.DATE):
        return None
    splits = []
    for split in sized_splits(scan.source, scan.filters, scan.schema.names):
        key_range = _key_range(scan.source.ranges(split, column), dtype)
        if key_range is None:
            return None
        splits.append((*key_range, split))
    return _ClusteredScan(scan, column, tuple(sorted(splits, key=lambda x: x[:2]))) if splits else None


def _key_range(statistics: ColumnRange | None, dtype: pa.DataType) -> tuple[int, int] | None:
    """Return the lowest and the highest key of a split; None if they are not known or a key may be NULL."""
    if statistics is None or statistics.nulls != 0 or statistics.low is None:
        return None
    low, high = comparable(statistics.low, dtype), comparable(statistics.high, dtype)
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def _choose_ranges(members: list[_ClusteredScan], nbytes: int, config: EngineConfig) -> FileShares | None:
    """Choose key ranges with boundaries of the largest input; inputs that these ranges do not suit are left out.

    Fewer tasks have wider ranges, so fewer row groups cross a boundary. Therefore smaller numbers of tasks are tried,
    too, until the ranges suit all inputs. A smaller number is chosen only if its ranges suit more inputs.
    """
    largest = max(members, key=lambda m: m.nbytes)
    best: list[_ClusteredScan] = []
    best_bounds: list[int] = []
    for count in task_counts(nbytes, config):
        bounds = _boundaries(largest, count)
        suitable = [m for m in members if _reads_little_twice(m, bounds, m is largest, nbytes)]
        if (
            _keeps_all_cores_busy(largest, bounds, config)
            and any(m is largest for m in suitable)
            and len(suitable) > len(best)
        ):
            best, best_bounds = suitable, bounds
        if len(best) == len(members):
            break
    return _ranges(best, best_bounds) if best else None


def _keeps_all_cores_busy(largest: _ClusteredScan, bounds: Sequence[int], config: EngineConfig) -> bool:
    """True if there is a range for each core, and the ranges divide the bytes of the largest input evenly."""
    return len(bounds) + 1 >= config.parallelism and is_even(_loads(largest, bounds))


def _reads_little_twice(
    member: _ClusteredScan, bounds: Sequence[int], is_largest: bool, all_bytes: int
) -> bool:
    """True if reading an input by these ranges reads only a small part of it twice."""
    twice = sum(_loads(member, bounds)) - member.nbytes
    return twice <= _MAX_OVERLAP_SHARE * member.nbytes or (
        not is_largest and twice < _MAX_SMALL_OVERLAP_SHARE * all_bytes
    )


def _ranges(members: Sequence[_ClusteredScan], bounds: Sequence[int]) -> FileShares:
    ranges = FileShares(NodeMap(), tuple(bounds))
    for member in members:
        ranges.scans[member.scan] = ScanShares((member.column,), _shares(member, bounds))
    return ranges


def _boundaries(member: _ClusteredScan, count: int) -> list[int]:
    """Return keys that divide the input's bytes into about ``count`` equal parts. Each is the first key of its part.

    A boundary is always the lowest key of a split, so that most splits belong to one part. For splits of 100 bytes and
    parts of 250 bytes, a boundary is placed before the split that starts nearest to 250, 500, ...
    """
    target = member.nbytes / count
    bounds: list[int] = []
    bytes_before = 0
    for low, _, split in member.splits:
        if (
            bytes_before >= target * (len(bounds) + 1) - split.nbytes / 2
            and (not bounds or low > bounds[-1])
            and bytes_before
        ):
            bounds.append(low)
        bytes_before += split.nbytes
    return bounds[: count - 1]


def _overlap(low: int, high: int, bounds: Sequence[int]) -> range:
    """Return the numbers of the ranges that contain keys from ``low`` to ``high``."""
    # For the bounds 10 and 20: the keys 5 to 12 are in the ranges 0 and 1, and 10 to 19 only in range 1.
    return range(bisect_right(bounds, low), bisect_right(bounds, high) + 1)


def _loads(member: _ClusteredScan, bounds: Sequence[int]) -> list[int]:
    """Return the bytes that the task of each range reads. A split that overlaps several ranges counts for each."""
    loads = [0] * (len(bounds) + 1)
    for low, high, split in member.splits:
        for index in _overlap(low, high, bounds):
            loads[index] += split.nbytes
    return loads


def _shares(member: _ClusteredScan, bounds: Sequence[int]) -> tuple[tuple[Split, ...], ...]:
    """Return the splits of each range. A split that crosses a boundary carries the key range of the rows to keep."""
    edges: list[int | None] = [None, *bounds, None]
    parts: list[list[Split]] = [[] for _ in range(len(bounds) + 1)]
    for low, high, split in member.splits:
        ranges = _overlap(low, high, bounds)
        for index in ranges:
            # A split inside of one range is read as it is. Without bounds, no row has to be compared.
            inside = len(ranges) == 1
            parts[index].append(
                split if inside else replace(split, bounds=(member.column, edges[index], edges[index + 1]))
            )
    return tuple(map(tuple, parts))
