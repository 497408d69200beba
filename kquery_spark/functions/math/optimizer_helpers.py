"""Functions that only Catalyst's optimizer inserts into plans, for decimals and floats, and the unary plus."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.math import decimal_kernels as dk
from kquery_spark.functions.registry import (
    ANSI_RAISES,
    CallContext,
    Function,
    Nullability,
    Operator,
    accept,
    depends_on_values,
    first_argument_type,
    register,
    register_internal,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector


def _make_decimal(args: Sequence[Vector], context: CallContext) -> Data:
    return dk.check_range(args[0].data, context)


def _identity(args: Sequence[Vector], context: CallContext) -> Data:
    return args[0].data


def _normalize(args: Sequence[Vector], context: CallContext) -> Data:
    """Replace -0.0 by 0.0. Every NaN is equal to every other one in the engine, so NaN may stay as it is."""
    data = args[0].array(context.num_rows)
    return pc.add(data, pa.scalar(0.0, data.type))


def _strings_to_doubles(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [t.DOUBLE] if types[0] == t.STRING else types


_FRACTIONAL = accept(first_argument_type, t.is_fractional)

register_internal(
    # MakeDecimal(child, precision, scale, nullOnOverflow): Call.of("make_decimal", child, dtype=decimal(precision, scale)),
    # mode TRY where nullOnOverflow. CheckOverflow(child, dataType, nullOnOverflow) is a Cast between decimals instead.
    Function(
        "make_decimal",
        _make_decimal,
        depends_on_values,
        catalyst=("MakeDecimal",),
        raises=ANSI_RAISES,
        encoded=True,
    ),
    Function(
        "known_not_null",
        _identity,
        first_argument_type,
        catalyst=("KnownNotNull",),
        nullable=Nullability.NEVER,
        encoded=True,
    ),
    Function(
        "known_normalized",
        _identity,
        first_argument_type,
        catalyst=("KnownFloatingPointNormalized",),
        encoded=True,
    ),
    Function("normalize_nan_and_zero", _normalize, _FRACTIONAL, catalyst=("NormalizeNaNAndZero",)),
)
register(
    Function(
        "positive",
        _identity,
        first_argument_type,
        catalyst=("UnaryPositive",),
        encoded=True,
        coerce=_strings_to_doubles,
        operator=Operator(spellings=("+",)),
        calls=CallForm(shape=(1, "(+ {0})")),
    ),
)
