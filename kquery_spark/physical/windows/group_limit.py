"""A limit of the rows of each partition by their rank."""

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
    """Rows are within the limit if the ranking ``function`` gives them at most ``rows``."""

    function: str
    rows: int

    def first_rows(
        self, partition: Sequence[Vector], order: Sequence[tuple[SortKey, Vector]], num_rows: int
    ) -> tuple[Int64s, Segments]:
        """Return the rows within the limit, sorted by partition and order, and their segments, as ``arrange`` does."""
        entry = window_function(self.function)
        leading = None if entry is None or entry.counts_keys else self.rows
        rows, segments = arrange(partition, order, num_rows, leading)
        mask = rank_of(self.function, segments) <= self.rows
        return rows[mask], segments.of_first_rows(mask)

    @override
    def __str__(self) -> str:
        return f"{self.function} <= {self.rows}"
