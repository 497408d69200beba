"""Sorts rows by partition and order, and finds the boundaries of partitions and peers (rows with equal sort keys)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kquery_spark.expr import Expr, SortKey
from kquery_spark.physical.expr import Program
from kquery_spark.physical.grouping.key_codes import encode, pack
from kquery_spark.physical.sorting.row_order import row_order
from kquery_spark.physical.sorting.sort_keys import key_steps
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Flags, Int64s, Vector


@dataclass(frozen=True)
class Segments:
    """For each arranged row: the start and end (exclusive) of its partition and of its peers, as row numbers.

    ids: the number of the row's partition, from 0 to ``count - 1``. Example, for two partitions with the sort keys 5 5 7
    and 1: start is 0 0 0 3, end is 3 3 3 4, peer_start is 0 0 2 3, and peer_end is 2 2 3 4.
    """

    num_rows: int
    ids: Int64s
    count: int
    start: Int64s
    end: Int64s
    peer_start: Int64s
    peer_end: Int64s

    @property
    def rows(self) -> Int64s:
        """The row numbers."""
        return np.arange(self.num_rows, dtype=np.int64)

    def of_leading_rows(self, mask: Flags) -> Segments:
        """Return the segments of the rows for which the mask is True. They must be the first rows of each partition."""
        rows = self.rows
        return _segments((self.start == rows)[mask], (self.peer_start == rows)[mask])

    @property
    def firsts(self) -> Int64s:
        """The first row of each partition."""
        return np.flatnonzero(self.start == self.rows)


def window_keys(
    partition: Sequence[Expr], order: Sequence[SortKey], batch: Batch
) -> tuple[list[Vector], list[tuple[SortKey, Vector]]]:
    """Evaluate PARTITION BY and ORDER BY over a batch; returns the first two arguments of ``arrange``."""
    n, parts = batch.num_rows, len(partition)
    vectors = Program([*partition, *(key.expr for key in order)], batch.schema).run(batch)
    filled = [v.filled(n) for v in vectors[:parts]]
    return filled, list(zip(order, vectors[parts:], strict=True))


def arrange(
    partition: Sequence[Vector],
    order: Sequence[tuple[SortKey, Vector]],
    num_rows: int,
    limit: int | None = None,
) -> tuple[Int64s, Segments]:
    """Return the row numbers sorted by partition and order, and the segments of the rows in that order.

    limit: the number of leading rows of each partition that must be in order and have correct peers; None for all rows.
    Other rows may be missing.
    """
    # The numbers of groups may have gaps: they are sorted anyway, together with the first bits of the sort keys.
    groups = pack([encode(v) for v in partition], num_rows).widened().values if partition else None
    rows, starts_peers = row_order(key_steps(order), num_rows, groups, limit)
    starts_partition = np.zeros(len(rows), np.bool_)
    starts_partition[:1] = True
    if groups is not None:
        ordered = groups[rows]
        starts_partition[1:] = ordered[1:] != ordered[:-1]
    return rows, _segments(starts_partition, starts_peers)


def _segments(starts_partition: Flags, starts_peers: Flags) -> Segments:
    """Return the segments of rows. Each mask is True for the first row of each partition, or of each group of peers."""
    start, end = _runs(starts_partition)
    peer_start, peer_end = _runs(starts_peers)
    ids = np.cumsum(starts_partition, dtype=np.int64) - 1
    return Segments(len(ids), ids, int(starts_partition.sum()), start, end, peer_start, peer_end)


def _runs(is_start: Flags) -> tuple[Int64s, Int64s]:
    """Return the start and the end of each row's run. is_start: True for the first row of each run."""
    starts = np.flatnonzero(is_start)
    lengths = np.diff(np.append(starts, len(is_start)))
    return np.repeat(starts, lengths), np.repeat(starts + lengths, lengths)
