"""Digits of strings: CONV between bases, and the check digit of LUHN_CHECK."""

from __future__ import annotations

from collections.abc import Sequence

from kquery_spark.errors import ExecutionError
from kquery_spark.functions.core.distinct import each_distinct, per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ANSI_RAISES,
    CallContext,
    EvalMode,
    Function,
    JavaMethod,
    Nullability,
    accept,
    cast_to,
    register,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_VALUES = {c: i for i, c in enumerate(_DIGITS)} | {c.lower(): i for i, c in enumerate(_DIGITS)}
_LARGEST = 2**64 - 1


def _conv(args: Sequence[Vector], context: CallContext) -> Data:
    """The number that a string begins with, in another base; a negative base makes it signed."""

    def evaluate(text: str, source: int, target: int) -> str | None:
        return _convert_base(text.strip(" "), source, target, context.mode is EvalMode.ANSI)

    return per_distinct(evaluate, args, context)


def _convert_base(text: str, source: int, target: int, raises: bool) -> str | None:
    if not (2 <= source <= 36 and 2 <= abs(target) <= 36 and text):
        return None
    is_negative = text[0] == "-"
    number = _unsigned(text[is_negative:], source, raises)
    is_high = number >= 2**63
    if is_negative and target > 0:
        number = _LARGEST if is_high else -number & _LARGEST
    if target < 0 and is_high:
        number = -number & _LARGEST
        is_negative = True
    return ("-" if is_negative and target < 0 else "") + _format_number(number, abs(target))


def _unsigned(digits: str, base: int, raises: bool) -> int:
    """The number of the leading digits; the largest one for a larger one, unless that raises."""
    number = 0
    for digit in digits:
        value = _VALUES.get(digit, base)
        if value >= base:
            break
        number = number * base + value
        if number > _LARGEST:
            if raises:
                raise ExecutionError("ARITHMETIC_OVERFLOW", "Overflow in function conv().")
            return _LARGEST
    return number


def _format_number(number: int, base: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _is_luhn(text: str) -> bool:
    if not text.isdecimal() or any(c > "\uffff" for c in text):
        return False
    digits = [int(c) for c in reversed(text)]
    return (sum(digits[::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])) % 10 == 0


register(
    Function(
        "conv",
        _conv,
        accept(t.STRING, t.STRING, t.INT),
        catalyst=("Conv",),
        arity=(3, 3),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1, 2),
        raises=ANSI_RAISES,
        coerce=cast_to(t.STRING, t.INT),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "luhn_check",
        each_distinct(_is_luhn),
        accept(t.BOOL, t.STRING),
        java=(JavaMethod("ExpressionImplUtils", "isLuhnNumber"),),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.STRING),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
