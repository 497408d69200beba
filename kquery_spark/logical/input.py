"""The open input of a plan that is to be applied to some DataFrame."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.logical.plan import LogicalPlan


@dataclass(frozen=True)
class Input(LogicalPlan):
    """Rows given by whoever runs the plan: ``name`` is how SQL refers to them, ``key`` which hand-over they are.

    ``rows``: about how many there are, where that is known.
    """

    name: str
    columns: pa.Schema
    key: str = ""
    rows: float | None = None

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return self.columns

    def label(self) -> str:
        """See LogicalPlan."""
        return f"Input: {self.name}"
