"""Call Python functions of Spark's users, as Spark's own ``BatchEvalPython`` and ``ArrowEvalPython`` do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from kquery_spark.errors import PlanError
from kquery_spark.expr import Expr
from kquery_spark.logical.appended_columns import AppendsColumns
from kquery_spark.logical.plan import LogicalPlan


@dataclass(frozen=True)
class EvalPython(AppendsColumns):
    """The child's ``required`` columns (None: all) beside the ``results`` of functions called on ``args``.

    code: the pickled evaluation, which gets batches of at most ``batch_rows`` rows (0: any number) of the arguments and
    gives those of the results. calls: the functions' calls in words.

    The functions are called once for each row of the child, in the order of the rows and only in Spark's tasks, so no rule
    moves filters below this node or computes it twice.
    """

    child: LogicalPlan
    args: tuple[Expr, ...]
    results: pa.Schema
    calls: tuple[str, ...]
    batch_rows: int
    code: bytes = field(repr=False)
    required: tuple[str, ...] | None = None

    passes_rows_on: ClassVar[bool] = True
    calls_python: ClassVar[bool] = True

    @override
    def derive_schema(self) -> pa.Schema:
        if len(self.calls) != len(self.results):
            raise PlanError(f"{len(self.calls)} function(s) do not give {len(self.results)} column(s)")
        return pa.schema([*(self.child.schema.field(name) for name in self.kept), *self.results])

    @override
    def label(self) -> str:
        return f"EvalPython: {calls_text(self.calls, self.results.names)}"


def calls_text(calls: Sequence[str], names: Sequence[str]) -> str:
    """``[f(#x) AS y, ...]``."""
    return f"[{', '.join(f'{call} AS {name}' for call, name in zip(calls, names, strict=True))}]"
