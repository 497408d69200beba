"""Type rules that many functions share: they compute the result type, and the types to which arguments are cast."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.types.names import spark_name

TypeRule = Callable[[Sequence[pa.DataType]], pa.DataType]
Coercion = Callable[[Sequence[pa.DataType]], Sequence[pa.DataType]]


class ArgumentTypeError(PlanError):
    """The function does not accept an argument of this type. The caller adds the function's name to the message."""


def fixed(dtype: pa.DataType) -> TypeRule:
    """A rule whose result is always ``dtype``."""
    return lambda types: dtype


def first_argument_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The rule for functions that return the type of the first argument."""
    return types[0]


def depends_on_values(types: Sequence[pa.DataType]) -> pa.DataType:
    """A placeholder for ``result`` in entries whose type needs more than the argument types.

    Either ``result_of`` computes the type from the argument values, or the importer sets it.
    """
    raise PlanError("the type depends on the arguments' values")


def given_schema(types: Sequence[pa.DataType]) -> pa.DataType:
    """A placeholder for ``result`` in entries whose type is a schema that the caller specifies."""
    raise PlanError("the type is that of a schema")


def accept(result: pa.DataType | TypeRule, *allowed: Callable[[pa.DataType], bool] | pa.DataType) -> TypeRule:
    """A rule that checks each argument against a type or predicate (the last one repeats) and returns ``result``."""

    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        for i, dtype in enumerate(types):
            test = allowed[min(i, len(allowed) - 1)]
            if not (dtype == test if isinstance(test, pa.DataType) else test(dtype)):
                raise ArgumentTypeError(f"argument {i + 1} cannot be {spark_name(dtype)}")
        return result if isinstance(result, pa.DataType) else result(types)

    return rule


def cast_to(*targets: pa.DataType) -> Coercion:
    """A coercion that casts each argument to the target type at its position; the last target repeats."""
    return lambda types: [targets[min(i, len(targets) - 1)] for i in range(len(types))]
