"""The open input of a plan that is to be applied to some DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

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

    @override
    def derive_schema(self) -> pa.Schema:
        return self.columns

    @override
    def estimated_rows(self, input_rows: Sequence[float]) -> float:
        return UNKNOWN_ROWS if self.rows is None else self.rows

    @override
    def label(self) -> str:
        return f"Input: {self.name}"
