"""A source of one's own: three methods, and the engine scans, prunes and ships it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.logical import Scan
from kquery_spark.sources.base import ColumnRange, Source, Split
from kquery_spark.stages.serialization import from_bytes, register_serializable, to_bytes
from kquery_spark.types.batch import Batch
from tests.sources.compare import read_all


@register_serializable
@dataclass(frozen=True)
class Squares(Source):
    """The squares of the numbers below ``count``, ten a split."""

    count: int

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [pa.field("n", pa.int64(), nullable=False), pa.field("square", pa.int64(), nullable=False)]
        )

    def splits(self) -> list[Split]:
        return [Split(0, (start, min(10, self.count - start)), 10, 160) for start in range(0, self.count, 10)]

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[Batch]:
        start, length = split.pieces
        numbers = range(start, start + length)
        data = {"n": pa.array(numbers, pa.int64()), "square": pa.array([n * n for n in numbers], pa.int64())}
        schema = pa.schema([self.schema.field(c) for c in columns])
        yield Batch(schema, tuple(data[c] for c in columns), length)

    def ranges(self, split: Split, column: str) -> ColumnRange | None:
        start, length = split.pieces
        return ColumnRange(start, start + length - 1, 0) if column == "n" else None


def test_it_is_scanned():
    assert read_all(Squares(25)).column("square").to_pylist() == [n * n for n in range(25)]
    assert read_all(Squares(25), ["square"]).schema.names == ["square"]


def test_it_travels_in_plans():
    plan = Scan("squares", Squares(25), ("square",))
    assert from_bytes(to_bytes(plan), Scan) == plan
