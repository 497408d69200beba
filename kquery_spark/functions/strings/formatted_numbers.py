"""TO_CHAR, TO_NUMBER and TRY_TO_NUMBER with constant formats."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.math.decimal_parts import decimal_parts
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    COLUMN,
    CallContext,
    Function,
    Nullability,
    VersionChange,
    cast_to,
    depends_on_values,
    register,
)
from kquery_spark.functions.strings.number_formats import NumberFormat, number_format
from kquery_spark.kernels.text import null_mask
from kquery_spark.types import decimals
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _format(vector: Vector) -> NumberFormat:
    return number_format(vector.data.as_py())


def _to_char(args: Sequence[Vector], context: CallContext) -> Data:
    if not args[1].data.is_valid:
        return pa.nulls(context.num_rows, t.STRING)
    form, array = _format(args[1]), args[0].array(context.num_rows)
    numbers = decimal_parts(array)
    if numbers is None:
        return per_distinct(form.write, args[:1], context)
    return form.write_all(numbers, null_mask(array))


def _to_number(args: Sequence[Vector], context: CallContext) -> Data:
    strings = args[0].array(context.num_rows)
    numbers = _format(args[1]).parse(strings)
    if numbers.null_count > strings.null_count:
        text = strings.filter(pc.and_(pc.is_valid(strings), pc.is_null(numbers)))[0].as_py()
        raise ExecutionError(
            "INVALID_FORMAT.MISMATCH_INPUT",
            f"The format is invalid: {args[1].data.as_py()!r}. The input {text!r} does not match the format.",
        )
    return numbers


def _try_to_number(args: Sequence[Vector], context: CallContext) -> Data:
    return _format(args[1]).parse(args[0].array(context.num_rows))


def _literal_format(value: object) -> NumberFormat:
    if value is COLUMN or not isinstance(value, str):
        raise Unsupported("the format of numbers must be a literal")
    return number_format(value)


def _number_type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    if types[0] not in (t.STRING, t.NULL):
        raise PlanError("a number is read from a string")
    form = _literal_format(values[1])
    if form.precision == form.scale:
        raise Unsupported("numbers by a format without digits before the point are not supported")
    return t.decimal(form.precision, form.scale)


def _char_type(types: Sequence[pa.DataType], values: Sequence[object]) -> pa.DataType:
    if not t.is_decimal(types[0]):
        raise Unsupported(f"to_char of {t.spark_name(types[0])} is not supported")
    _literal_format(values[1])
    return t.STRING


_BY_FORMAT = CallForm(columns=(0, 1))
_OF_DIGITS = (
    VersionChange("takes a string without digits for a number", since=(4, 2), patches=((4, 1, 1),)),
)


def _reading(name: str, catalyst: str) -> Function:
    fails = name == "to_number"
    return Function(
        name,
        _to_number if fails else _try_to_number,
        depends_on_values,
        catalyst=(catalyst,),
        arity=(2, 2),
        nullable=Nullability.ANY_ARGUMENT if fails else Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        raises=ALWAYS_RAISES if fails else frozenset(),
        result_of=_number_type,
        coerce=cast_to(t.STRING),
        calls=_BY_FORMAT,
        changes=_OF_DIGITS,
    )


register(
    Function(
        "to_char",
        _to_char,
        depends_on_values,
        catalyst=("ToCharacter",),
        arity=(2, 2),
        result_of=_char_type,
        coerce=lambda types: [decimals.for_number(types[0]), t.STRING],
        aliases=("to_varchar",),
        calls=_BY_FORMAT,
    ),
    _reading("to_number", "ToNumber"),
    _reading("try_to_number", "TryToNumber"),
)
