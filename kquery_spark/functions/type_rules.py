"""Type rules that many functions share: from argument types to the result type, and the casts of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.types.names import spark_name

TypeRule = Callable[[Sequence[pa.DataType]], pa.DataType]
Coercion = Callable[[Sequence[pa.DataType]], Sequence[pa.DataType]]


class ArgumentTypeError(PlanError):
    """A type that a function does not accept for an argument; the caller adds the function's name."""


def fixed(dtype: pa.DataType) -> TypeRule:
    """Always ``dtype``."""
    return lambda types: dtype


def same(types: Sequence[pa.DataType]) -> pa.DataType:
    """The first argument's type."""
    return types[0]


def depends_on_values(types: Sequence[pa.DataType]) -> pa.DataType:
    """The ``result`` of functions whose type only ``result_of`` can tell."""
    raise PlanError("the type depends on the arguments' values")


def given_schema(types: Sequence[pa.DataType]) -> pa.DataType:
    """The ``result`` of functions whose type is a schema that the caller gives."""
    raise PlanError("the type is that of a schema")


def accept(result: pa.DataType | TypeRule, *allowed: Callable[[pa.DataType], bool] | pa.DataType) -> TypeRule:
    """``result``, after checking each argument (the last test repeats) against a type or a predicate."""

    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        for i, dtype in enumerate(types):
            test = allowed[min(i, len(allowed) - 1)]
            if not (dtype == test if isinstance(test, pa.DataType) else test(dtype)):
                raise ArgumentTypeError(f"argument {i + 1} cannot be {spark_name(dtype)}")
        return result if isinstance(result, pa.DataType) else result(types)

    return rule


def cast_to(*targets: pa.DataType) -> Coercion:
    """Frontends cast each argument to the target at its position (the last repeats)."""
    return lambda types: [targets[min(i, len(targets) - 1)] for i in range(len(types))]
