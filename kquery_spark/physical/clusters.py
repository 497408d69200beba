"""Where groups begin in rows of which those of one group follow each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kquery_spark.physical.expr import Program
from kquery_spark.physical.keys import group_rows
from kquery_spark.types.batch import Batch, concat
from kquery_spark.types.vector import Vector


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
