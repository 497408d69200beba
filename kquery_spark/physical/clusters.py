"""Finds the boundaries of groups in batches in which the rows of a group are consecutive.

A group can continue in the next batches. For the key batches ``a a b`` and ``b c c``, the group starts are [0, 2] and [1].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from kquery_spark.physical.expr import Program
from kquery_spark.physical.grouping.group_rows import group_rows
from kquery_spark.types.batch import Batch, concat

Rows = TypeVar("Rows", Batch, pa.RecordBatch)


def with_group_starts(batches: Iterator[Batch], program: Program) -> Iterator[tuple[Batch, list[int]]]:
    """Yield the batches, each with the rows at which a new group begins. program: computes the keys of the groups."""
    last: Batch | None = None
    for batch in batches:
        yield batch, _group_starts(program, last, batch)
        last = batch.slice(batch.num_rows - 1)


def _group_starts(program: Program, last: Batch | None, batch: Batch) -> list[int]:
    """Return the rows of ``batch`` at which a new group begins. last: the row before the batch; None for the first batch."""
    rows = batch if last is None else concat(batch.schema, [last, batch])
    n = rows.num_rows
    ids = group_rows([v.filled(n) for v in program.run(rows)], n).ids
    starts = np.flatnonzero(ids[1:] != ids[:-1]) + (1 if last is None else 0)
    return [int(s) for s in ([0] if last is None else []) + starts.tolist()]


def pieces_of_groups(batches: Iterator[tuple[Rows, Sequence[int]]]) -> Iterator[list[Rows]]:
    """Yield the rows of each group as slices of batches. batches: pairs of a batch and the rows at which groups begin."""
    held: list[Rows] = []
    for batch, starts in batches:
        begin = 0
        for start in starts:
            if start > begin:
                held.append(batch.slice(begin, start - begin))
            if held:
                yield held
                held = []
            begin = start
        held.append(batch.slice(begin))
    if held:
        yield held
