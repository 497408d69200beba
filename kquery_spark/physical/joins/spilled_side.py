"""An input of a join on disk: in hash partitions of its keys, or in chunks if the join has no keys.

If the build side does not fit into memory, both sides are written to hash partitions. Matching rows are in partitions of
the same number, so the partitions are joined one by one. A partition that is still too large is divided again, by the
hash of the next ``level``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.expr import Expr
from kquery_spark.physical.expr import Program
from kquery_spark.physical.spill import SpillDirectory, SpillFile, hashed_bytes, scatter
from kquery_spark.types.batch import Batch


class SpilledSide:
    """One input of a join in hash partitions. ``has_null_key`` is true once a row with a NULL in a key was written."""

    def __init__(
        self, spill: SpillDirectory, schema: pa.Schema, keys: Sequence[Expr], level: int = 0
    ) -> None:
        self.schema = schema
        self.level = level
        self.files = spill.partitions(schema)
        self.has_null_key = False
        self._program = Program(keys, schema)

    def add(self, batch: Batch) -> None:
        """Write each row of a batch to its partition."""
        keys = self._program.run(batch)
        self.has_null_key = self.has_null_key or any(k.null_count for k in keys)
        scatter(batch, keys, self.files, self.level)


class SpilledChunks:
    """The build side of a nested-loop join on disk, in chunks of about ``size`` bytes."""

    def __init__(self, file: SpillFile, size: int) -> None:
        self.file = file
        self._size = size

    def add(self, batch: Batch) -> None:
        """Write the rows of a batch in chunks."""
        nbytes = hashed_bytes(batch.nbytes, batch.num_rows)
        rows = max(1, self._size * batch.num_rows // max(1, nbytes))
        for start in range(0, batch.num_rows, rows):
            self.file.append(batch.slice(start, rows))


def chunks_with_marks(file: SpillFile, marks: np.ndarray | None) -> Iterator[tuple[Batch, np.ndarray | None]]:
    """Yield the chunks of a file, each with the part of ``marks`` (one per row of the file) for its rows."""
    start = 0
    for chunk in file.read():
        yield chunk, None if marks is None else marks[start : start + chunk.num_rows]
        start += chunk.num_rows
