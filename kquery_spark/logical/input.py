"""The placeholder for rows that the plan receives when it runs, for example from a Spark DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.logical.plan import UNKNOWN_ROWS, LogicalPlan


@dataclass(frozen=True)
class Input(LogicalPlan):
    """Rows that the executor of the plan supplies.

    ``name`` is the name in SQL. ``key`` identifies the input among all inputs of the plan. ``rows`` is the approximate
    number of rows, if it is known.
    """

    name: str
    columns: pa.Schema
    key: str = ""
    rows: float | None = None

    is_row_wise: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        return self.columns

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return UNKNOWN_ROWS if self.rows is None else self.rows

    @override
    def label(self) -> str:
        return f"Input: {self.name}"
