"""Base of the operators that call Python functions of Spark's users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr import Expr
from kquery_spark.functions.user import unpickled
from kquery_spark.physical.operators.base import UnaryExec
from kquery_spark.physical.python_batches import Arguments, Evaluation


class PythonExec(UnaryExec):
    """Calls functions on ``args`` by the pickled evaluation ``code``; ``output`` is the schema. All three are fields."""

    if TYPE_CHECKING:

        @property
        def args(self) -> tuple[Expr, ...]:
            """What the functions are called on."""

        @property
        def output(self) -> pa.Schema:
            """The schema."""

        @property
        def code(self) -> bytes:
            """The pickled evaluation."""

    calls_python: ClassVar[bool] = True

    @property
    @override
    def schema(self) -> pa.Schema:
        return self.output

    def arguments(self) -> Arguments:
        """Computes the arguments from the child's batches."""
        return Arguments(self.args, self.child.schema)

    def evaluation(self) -> Evaluation[Any]:
        """The evaluation, unpickled for this task alone."""
        return cast(Evaluation[Any], unpickled(self.code))
