"""The source of Spark's ``range``, whose numbers are generated instead of read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from kquery_spark.sources.base import ColumnRange, Source, Split
from kquery_spark.types.batch import Batch

_SPLIT_ROWS = 1 << 20
_MAX_SPLITS = 1 << 12
_BATCH_ROWS = 1 << 17


@dataclass(frozen=True)
class RangeSource(Source):
    """Bigints from ``start`` to before ``end`` in steps of ``step`` (not 0), in one column."""

    divisible: ClassVar[bool] = True
    columnar: ClassVar[bool] = True

    start: int
    end: int
    step: int = 1
    column: str = "id"

    @property
    @override
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(self.column, pa.int64(), False)])

    @override
    def row_count(self) -> int:
        return max(0, -(-(self.end - self.start) // self.step))  # len(range(...)) ends at 64 bits

    def splits(self) -> list[Split]:
        """Splits of a million numbers or more; the piece of a split is its index."""
        count, split_rows = self.row_count(), self._split_rows
        return [
            Split(0, (first // split_rows,), rows, 8 * rows)
            for first in range(0, count, split_rows)
            for rows in (min(split_rows, count - first),)
        ]

    @override
    def column_bytes(self, columns: Sequence[str]) -> int:
        return 8 * self.row_count() * len(columns)

    @override
    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        """The bounds are exact: they follow from start and step."""
        ends = [self.start + at * self.step for p in split.pieces for at in self._bounds(p)]
        return ColumnRange(min(ends), max(ends), 0)

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        """Batches of 128k numbers."""
        schema = pa.schema([self.schema.field(c) for c in columns])
        for piece in split.pieces:
            first, last = self._bounds(piece)
            for at in range(first, last + 1, _BATCH_ROWS):
                rows = min(_BATCH_ROWS, last + 1 - at)
                yield Batch(schema, (self._numbers(at, rows),) * len(columns), rows)

    @property
    def _split_rows(self) -> int:
        return max(_SPLIT_ROWS, -(-self.row_count() // _MAX_SPLITS))

    def _bounds(self, piece: int) -> tuple[int, int]:
        """Return the positions of the first and the last number of a split."""
        return piece * self._split_rows, min((piece + 1) * self._split_rows, self.row_count()) - 1

    def _numbers(self, at: int, rows: int) -> pa.Array:
        # A step may be as wide as the whole range. Products may then wrap around, but the sums are still right modulo 2^64.
        with np.errstate(over="ignore"):
            steps = np.arange(rows, dtype=np.int64) * np.int64(self.step)
            return pa.array(np.int64(self.start + at * self.step) + steps)
