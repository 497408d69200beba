"""RAISE_ERROR raises an error for every row that it is evaluated for. Its type is NULL, which casts to any other type."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    CallContext,
    Function,
    Nullability,
    cast_to,
    fixed,
    register,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _raise(args: Sequence[Vector], context: CallContext) -> Data:
    if context.num_rows:
        message = args[0].array(context.num_rows)[0].as_py()
        raise ExecutionError("USER_RAISED_EXCEPTION", "null" if message is None else message)
    return pa.nulls(0, context.dtype)


register(
    Function(
        "raise_error",
        _raise,
        fixed(t.NULL),
        nullable=Nullability.OTHER_REASONS,
        raises=ALWAYS_RAISES,
        foldable=False,
        coerce=cast_to(t.STRING),
    )
)
