"""Calls scalar Python UDFs, as Spark's ``BatchEvalPython`` and ``ArrowEvalPython`` do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.logical.appended_columns import AppendsColumns
from kquery_spark.logical.plan import LogicalPlan
from kquery_spark.logical.python_calls import PythonCalls


@dataclass(frozen=True)
class EvalPython(AppendsColumns):
    """Appends the results of ``calls`` on ``args`` to the child's ``required`` columns (None: all).

    The functions may have side effects, so they are called exactly once for each row of the child, in row order, and only
    in Spark's tasks. Therefore no rule moves filters below this node or computes it twice.
    """

    child: LogicalPlan
    args: tuple[Expr, ...]
    calls: PythonCalls
    required: tuple[str, ...] | None = None

    is_row_wise: ClassVar[bool] = True
    calls_python: ClassVar[bool] = True

    @property
    @override
    def appended(self) -> pa.Schema:
        return self.calls.columns

    @override
    def label(self) -> str:
        return f"EvalPython: [{self.calls.with_names}]"
