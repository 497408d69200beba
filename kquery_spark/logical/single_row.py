"""Check that there is at most one row, as a subquery used as a value must have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


@dataclass(frozen=True)
class SingleRow(UnaryPlan):
    """The child's row, or none; two rows are an error when the query runs."""

    child: LogicalPlan

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return self.child.schema

    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        """See LogicalPlan."""
        return min(input_rows[0], 1.0)
