"""Checks that a scalar subquery returns at most one row for each outer row."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    Function,
    Nullability,
    accept,
    register_internal,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _at_most_one(args: Sequence[Vector], context: CallContext) -> Data:
    rows = pc.max(args[0].array(context.num_rows)).as_py()
    if rows is not None and rows > 1:
        raise ExecutionError(
            "SCALAR_SUBQUERY_TOO_MANY_ROWS", "More than one row returned by a subquery used as an expression."
        )
    return pa.repeat(pa.scalar(True), context.num_rows)


# The argument is the subquery's number of rows for each outer row, NULL if it has none. The function is a filter that
# passes all rows or raises an error.
register_internal(
    Function(
        "at_most_one_row",
        _at_most_one,
        accept(t.BOOL, t.LONG),
        arity=(1, 1),
        nullable=Nullability.NEVER,
        raises=ALWAYS_RAISES,
        selectivity=1.0,
    )
)
