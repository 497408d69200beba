"""Where groups begin in rows of which those of one group follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from kquery_spark.physical.expr import Program
from kquery_spark.physical.keys import group_rows
from kquery_spark.types.batch import Batch, concat
from kquery_spark.types.vector import Vector

Rows = TypeVar("Rows", Batch, pa.RecordBatch)


def with_group_starts(batches: Iterator[Batch], program: Program) -> Iterator[tuple[Batch, list[int]]]:
    """Clustered batches, each with the rows at which a group begins; ``program`` gives the keys of the groups."""
    last: Batch | None = None
    for batch in batches:
        yield batch, _group_starts(program, last, batch)
        last = batch.slice(batch.num_rows - 1)


def _group_starts(program: Program, last: Batch | None, batch: Batch) -> list[int]:
    """Rows with which a group begins, given the row before the first one."""
    rows = batch if last is None else concat(batch.schema, [last, batch])
    n = rows.num_rows
    ids = group_rows([Vector(v.dtype, v.physical(n)) for v in program.run(rows)], n).ids
    starts = np.flatnonzero(ids[1:] != ids[:-1]) + (1 if last is None else 0)
    return [int(s) for s in ([0] if last is None else []) + starts.tolist()]


def pieces_of_groups(batches: Iterator[tuple[Rows, Sequence[int]]]) -> Iterator[list[Rows]]:
    """The rows of each group as slices of the batches they are in, given the rows at which groups begin."""
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
