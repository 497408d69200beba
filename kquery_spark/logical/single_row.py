"""Check that there is at most one row, as a subquery used as a value must have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.logical.plan import LogicalPlan


@dataclass(frozen=True)
class SingleRow(LogicalPlan):
    """The child's row, or none; two rows are an error when the query runs."""

    child: LogicalPlan

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return self.child.schema

    @property
    def children(self) -> tuple[LogicalPlan, ...]:
        """See LogicalPlan."""
        return (self.child,)

    def with_children(self, children: Sequence[LogicalPlan]) -> LogicalPlan:
        """See LogicalPlan."""
        return SingleRow(children[0])
