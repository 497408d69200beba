"""Limits the rows of each partition by their rank, for example to those with ``rank <= 3``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override

from kquery_spark.expr import SortKey
from kquery_spark.functions.aggregate.windows import window_function
from kquery_spark.physical.windows.functions import rank_of
from kquery_spark.physical.windows.segments import Segments, arrange
from kquery_spark.types.vector import Int64s, Vector


@dataclass(frozen=True)
class GroupLimit:
    """The condition ``function <= rows``, where the function is row_number, rank or dense_rank."""

    function: str
    rows: int

    def first_rows(
        self, partition: Sequence[Vector], order: Sequence[tuple[SortKey, Vector]], num_rows: int
    ) -> tuple[Int64s, Segments]:
        """Return the rows within the limit, sorted by partition and order, and their segments, as ``arrange`` does."""
        entry = window_function(self.function)
        # A row_number or rank of at most n is among the first n rows and their peers. dense_rank has no such bound.
        leading = None if entry is None or entry.counts_distinct_keys else self.rows
        rows, segments = arrange(partition, order, num_rows, leading)
        mask = rank_of(self.function, segments) <= self.rows
        return rows[mask], segments.of_leading_rows(mask)

    @override
    def __str__(self) -> str:
        return f"{self.function} <= {self.rows}"
