"""The open input of a plan that is to be applied to some DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from kquery_spark.logical.plan import UNKNOWN_ROWS, LogicalPlan


@dataclass(frozen=True)
class Input(LogicalPlan):
    """Rows given by whoever runs the plan: ``name`` is how SQL refers to them, ``key`` which hand-over they are.

    ``rows``: about how many there are, where that is known.
    """

    name: str
    columns: pa.Schema
    key: str = ""
    rows: float | None = None

    passes_rows_on: ClassVar[bool] = True

    def derive_schema(self) -> pa.Schema:
        """See LogicalPlan."""
        return self.columns

    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        """See LogicalPlan."""
        return UNKNOWN_ROWS if self.rows is None else self.rows

    def label(self) -> str:
        """See LogicalPlan."""
        return f"Input: {self.name}"
