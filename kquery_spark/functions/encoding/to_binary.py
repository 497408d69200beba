"""TO_BINARY, whose format is a constant: the bytes that a string spells, or its own."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    COLUMN,
    CallContext,
    EvalMode,
    Function,
    Nullability,
    accept,
    cast_to,
    register,
)
from kquery_spark.functions.strings.characters import from_hexadecimal
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_UTF8_NAMES = ("utf-8", "utf8")


def _format(args: Sequence[Vector]) -> str:
    return str(args[1].data.as_py()).lower() if len(args) > 1 else "hex"


def _to_binary(args: Sequence[Vector], context: CallContext) -> Data:
    if _format(args) in _UTF8_NAMES:
        return args[0].array(context.num_rows).cast(t.BINARY)

    strings = args[0].array(context.num_rows)
    spelled = from_hexadecimal(strings)
    if context.mode is not EvalMode.TRY and spelled.null_count > strings.null_count:
        text = strings.filter(pc.and_(pc.is_valid(strings), pc.is_null(spelled)))[0].as_py()
        raise ExecutionError(
            "CONVERSION_INVALID_INPUT", f"The value {text!r} cannot be converted to binary: it is not HEX."
        )
    return spelled


def _check(values: Sequence[object]) -> None:
    form = values[1] if len(values) > 1 else "hex"
    if form is COLUMN or not isinstance(form, str):
        raise Unsupported("the format of TO_BINARY must be a literal")
    if form.lower() not in ("hex", *_UTF8_NAMES):
        raise Unsupported(f"TO_BINARY by the format {form!r} is not supported")


register(
    # Unhex with failOnError; to_binary(text, 'utf-8') is another class in Spark's plans
    Function(
        "to_binary",
        _to_binary,
        accept(t.BINARY, t.STRING, t.STRING),
        arity=(1, 2),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        raises=frozenset({EvalMode.ANSI, EvalMode.LEGACY}),
        safe_for=lambda _, values, mode: len(values) > 1 and str(values[1]).lower() in _UTF8_NAMES,
        coerce=cast_to(t.STRING),
        check_values=_check,
        calls=CallForm(columns=(0, 1)),
        invalid_utf8=InvalidUtf8.REPLACED,
    )
)
