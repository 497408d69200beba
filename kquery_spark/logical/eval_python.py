"""Call Python functions of Spark's users, as Spark's own ``BatchEvalPython`` and ``ArrowEvalPython`` do."""

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
    """The child's ``required`` columns (None: all) beside the results of ``calls`` on ``args``.

    The functions are called once for each row of the child, in the order of the rows and only in Spark's tasks, so no rule
    moves filters below this node or computes it twice.
    """

    child: LogicalPlan
    args: tuple[Expr, ...]
    calls: PythonCalls
    required: tuple[str, ...] | None = None

    passes_rows_on: ClassVar[bool] = True
    calls_python: ClassVar[bool] = True

    @property
    @override
    def appended(self) -> pa.Schema:
        return self.calls.columns

    @override
    def label(self) -> str:
        return f"EvalPython: [{self.calls.with_names}]"
