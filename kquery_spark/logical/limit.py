"""Keep the first rows."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.logical.plan import LogicalPlan, UnaryPlan


@dataclass(frozen=True)
class Limit(UnaryPlan):
    """At most ``count`` rows (None: all) after skipping ``offset``."""

    child: LogicalPlan
    count: int | None
    offset: int = 0

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return self.child.schema

    def validate(self) -> None:
        """See LogicalPlan."""
        if (self.count is not None and self.count < 0) or self.offset < 0:
            raise PlanError("LIMIT and OFFSET must not be negative")

    def required_columns(self, needed: Set[str]) -> tuple[Set[str], ...]:
        """See LogicalPlan."""
        return (needed,)

    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        """See LogicalPlan."""
        return input_rows[0] if self.count is None else min(input_rows[0], float(self.count))

    def label(self) -> str:
        """See LogicalPlan."""
        count = "all" if self.count is None else str(self.count)
        return f"Limit: {count}" + (f", offset={self.offset}" if self.offset else "")
