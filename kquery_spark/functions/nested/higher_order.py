"""Higher-order functions: the parameters of their lambdas, their result types, and their kernels.

A lambda is evaluated once for all elements of a batch, as an expression over the concatenated elements of all arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.registry import EvalMode, Nullability
from kquery_spark.functions.special_forms import SpecialForm, register_special_forms, special_form
from kquery_spark.kernels.elements import is_array
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Int64s, Vector

Lambda = Callable[[Sequence[pa.Array], Int64s], Vector]
"""Evaluates a lambda: takes one array per parameter and the row of the batch for each value; returns the results."""

ParameterRule = Callable[[Sequence[pa.DataType]], Sequence[pa.Field]]
ResultRule = Callable[[Sequence[pa.DataType], pa.Field], pa.DataType]


@dataclass(frozen=True)
class LambdaCall:
    """The lambda of a call, the number of its parameters, and the result type; passed to a kernel besides the arguments."""

    function: Lambda
    parameters: int
    dtype: pa.DataType
    mode: EvalMode
    num_rows: int


LambdaKernel = Callable[[Sequence[pa.Array], LambdaCall], Data]


@dataclass(frozen=True, kw_only=True)
class HigherOrderFunction(SpecialForm):
    """A function whose last argument is a lambda.

    catalyst: the simple name of the Catalyst class. arguments: the number of arguments before the lambda.
    parameters: maps the types of the arguments to the lambda's parameters; raises PlanError for wrong types. optional: the
    number of trailing parameters that the lambda may omit. is_condition: the lambda returns a Boolean.
    result: maps the types of the arguments and the field of the lambda's result to the type of the call.
    nullable: when the result is NULL.
    raises: modes in which the call itself can raise an error.
    finishes: an optional second lambda converts the result. without_lambda: the function that implements calls without a
    lambda.
    """

    catalyst: str = ""
    arguments: int = 1
    parameters: ParameterRule
    optional: int = 0
    is_condition: bool = False
    result: ResultRule
    kernel: LambdaKernel
    nullable: Nullability = Nullability.ANY_ARGUMENT
    raises: frozenset[EvalMode] = frozenset()
    finishes: bool = False
    without_lambda: str = ""

    def check(self, types: Sequence[pa.DataType], parameters: int, body: pa.DataType) -> Sequence[pa.Field]:
        """Return the parameters of a lambda that has ``parameters`` of them; raises PlanError or Unsupported if invalid."""
        if len(types) != self.arguments:
            raise PlanError(f"{self.name} takes {self.arguments} argument(s) and a lambda")
        fields = self.parameters(types)
        if not len(fields) - self.optional <= parameters <= len(fields):
            raise PlanError(
                f"[INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH] the lambda of {self.name} cannot have "
                f"{parameters} parameters"
            )
        if self.is_condition and body not in (t.BOOL, t.NULL):
            raise PlanError(
                f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] the lambda of {self.name} has to be a condition"
            )
        if not self.is_condition and body == t.NULL:
            raise Unsupported(f"{self.name} to nothing but NULL is not supported")
        return fields[:parameters]


_BY_CLASS: dict[str, HigherOrderFunction] = {}


def register_higher_order(*entries: HigherOrderFunction) -> None:
    """Add entries; names and Catalyst classes are unique."""
    register_special_forms(*entries)
    _BY_CLASS.update((entry.catalyst, entry) for entry in entries)


def higher_order_function(name: str) -> HigherOrderFunction | None:
    """The higher-order function with this name; None if there is none."""
    entry = special_form(name)
    return entry if isinstance(entry, HigherOrderFunction) else None


def higher_order_classes() -> tuple[str, ...]:
    """The Catalyst classes of all higher-order functions."""
    return tuple(_BY_CLASS)


def higher_order_for_catalyst(cls: str) -> HigherOrderFunction:
    """The entry for one of ``higher_order_classes``."""
    return _BY_CLASS[cls]


# --- rules that entries share ---------------------------------------------------------------------


def element_field(dtype: pa.DataType, name: str = "element") -> pa.Field:
    """The field of an array's elements; raises PlanError for other types."""
    if not is_array(dtype):
        raise PlanError(
            f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] this function takes an array, not {t.spark_name(dtype)}"
        )
    return pa.field(name, dtype.value_type, dtype.value_field.nullable)


def entry_fields(dtype: pa.DataType) -> tuple[pa.Field, pa.Field]:
    """The fields of a map's keys and values; raises PlanError for other types."""
    if not pa.types.is_map(dtype):
        raise PlanError(f"[DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE] {t.spark_name(dtype)} is not a map")
    return pa.field("key", dtype.key_type, False), pa.field(
        "value", dtype.item_type, dtype.item_field.nullable
    )


def first_type(types: Sequence[pa.DataType], value: pa.Field) -> pa.DataType:
    """The type of the first argument."""
    return types[0]


def list_of_results(types: Sequence[pa.DataType], value: pa.Field) -> pa.DataType:
    """An array of the lambda's results."""
    return pa.list_(value.with_name("element"))
