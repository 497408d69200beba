"""Other spellings of values: base 64, base 2, Soundex; and numbers with thousands separators."""

from __future__ import annotations

import base64
import binascii
import math
import string
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.call_form import ALL_COLUMNS, THREE_COLUMNS, CallForm
from kquery_spark.functions.core.distinct import each_distinct, per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    ALWAYS_RAISES,
    ANSI_RAISES,
    Branching,
    CallContext,
    CatalystParameters,
    EvalMode,
    Function,
    Nullability,
    VersionChange,
    accept,
    cast_to,
    register,
)
from kquery_spark.functions.strings.entry import is_string_or_binary
from kquery_spark.kernels import utf8_string
from kquery_spark.types import names as t
from kquery_spark.types.units import INT32_MAX
from kquery_spark.types.vector import Data, Vector

_LINE_CHARACTERS = 76
_BASE64 = frozenset((string.ascii_letters + string.digits + "+/").encode())
_NOT_BASE64 = bytes(byte for byte in range(256) if byte not in _BASE64)


def _base64(args: Sequence[Vector], context: CallContext) -> Data:
    """Base 64 in lines of 76 characters, as Java's MIME encoder writes it."""
    chunked = len(args) < 2 or args[1].data.as_py()

    def evaluate(value: bytes) -> str:
        text = base64.b64encode(value).decode()
        if not chunked:
            return text
        return "\r\n".join(text[i : i + _LINE_CHARACTERS] for i in range(0, len(text), _LINE_CHARACTERS))

    return per_distinct(evaluate, args[:1], context)


def _decode_base64(source: bytes) -> bytes:
    """Decode like Java's MIME decoder, which skips other characters but raises an error for a malformed end."""
    body, padding, tail = source.partition(b"=")
    digits = body.translate(None, delete=_NOT_BASE64)
    _check_ending(len(digits) % 4, padding + tail)
    return binascii.a2b_base64(digits + b"=" * (-len(digits) % 4))


def _check_ending(rest: int, padding: bytes) -> None:
    """Raise an error unless the padding is empty, or completes the last group, which has ``rest`` characters."""
    if padding:
        if rest == 0 or (rest == 2 and padding[1:2] != b"="):
            raise _bad_base64("Input byte array has wrong 4-byte ending unit")
        padding = padding[2:] if rest == 2 else padding[1:]
    if rest == 1:
        raise _bad_base64("Last unit does not have enough valid bits")
    if padding.translate(None, delete=_NOT_BASE64):
        raise _bad_base64("Input byte array has incorrect ending byte")


def _bad_base64(message: str) -> ExecutionError:
    return ExecutionError("IllegalArgumentException", message)


_SOUNDEX = "01230127022455012623017202"


def _soundex_code(value: str) -> str:
    """A letter and three digits; a string that does not begin with a letter is given back."""
    if not value or not (value[0].isascii() and value[0].isalpha()):
        return value
    code = value[0].upper()
    last = _SOUNDEX[ord(code) - 65]
    for letter in value[1:]:
        if not (letter.isascii() and letter.isalpha()):
            last = "0"
            continue
        digit = _SOUNDEX[ord(letter.upper()) - 65]
        if digit == "7":
            continue
        if digit not in ("0", last):
            code += digit
            if len(code) == 4:
                break
        last = digit
    return code.ljust(4, "0")


# --- format_number --------------------------------------------------------------------------------

_MAX_FORMATTED_DECIMALS = 15


def _format_decimal(value: Any, digits: int) -> str | None:
    """Format with thousands separators and ``digits`` decimals, rounded half to even; None if ``digits`` is negative."""
    if digits < 0:
        return None
    _check_decimals(digits)
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        if abs(value) >= 1e15:
            raise Unsupported("format_number of doubles of 1e15 and more is not supported")
        rounded = _half_even(value, digits)
        sign = "-" if math.copysign(1, value) < 0 else ""
        return sign + format(abs(rounded), f",.{digits}f")
    with localcontext(Context(prec=100)):
        exact = Decimal(value)
        rounded = abs(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN))
    # Only doubles keep the sign of what is rounded to zero.
    text = format(rounded, f",.{digits}f")
    return f"-{text}" if exact < 0 else text


def _half_even(value: float, digits: int) -> Decimal:
    """The digits Java prints, rounded; what looks like a tie is decided by the double's exact value."""
    with localcontext(Context(prec=400)):
        shown, unit = Decimal(repr(value)), Decimal(1).scaleb(-digits)
        rounded = shown.quantize(unit, ROUND_HALF_EVEN)
        if abs(shown - rounded) * 2 != unit:
            return rounded
        exact = Decimal(value)
        if exact == shown:
            return rounded
        low = shown.quantize(unit, "ROUND_FLOOR")
        return low if exact < shown else low + unit


def _check_digits(values: Sequence[object]) -> None:
    if isinstance(values[1], int):
        _check_decimals(values[1])


def _check_decimals(digits: int) -> None:
    if digits > _MAX_FORMATTED_DECIMALS:
        raise Unsupported(f"format_number with more than {_MAX_FORMATTED_DECIMALS} decimals is not supported")


# --- parts of strings -------------------------------------------------------------------------------


def _overlay_string(value: str, by: str, position: int, length: int = -1) -> str:
    """Replace ``length`` characters from ``position`` (from 1) on with ``by``; a negative length is that of ``by``."""
    size = len(by) if length < 0 else length
    return value[: max(position - 1, 0)] + by + value[max(_index(value, position + size), 0) :]


def _index(value: str, position: int) -> int:
    """Convert a position (1-based, or negative from the end) to an index, which may lie before the string."""
    return position - 1 if position > 0 else len(value) + position if position < 0 else 0


def _elt(args: Sequence[Vector], context: CallContext) -> Data:
    """The argument with this number, from 1; outside it raises in ANSI mode."""
    n = context.num_rows
    number = args[0].array(n)
    count = len(args) - 1
    inside = pc.and_(pc.greater_equal(number, 1), pc.less_equal(number, count))
    if context.mode is EvalMode.ANSI and pc.any(pc.invert(inside)).as_py():
        raise ExecutionError(
            "INVALID_ARRAY_INDEX", f"The index is out of bounds. The array has {count} elements."
        )
    index = pc.if_else(inside, pc.subtract(pc.cast(number, t.LONG), 1), pa.scalar(None, t.LONG))
    return pc.choose(index, *[a.array(n) for a in args[1:]])


def _split_part(value: str, delimiter: str, number: int) -> str:
    """Return the part with this number, counted from 1, or from the end if negative; empty if there is none."""
    if number == 0:
        raise ExecutionError(
            "INVALID_INDEX_OF_ZERO", "The index 0 is invalid. An index shall be either < 0 or > 0."
        )
    parts = value.split(delimiter) if delimiter else [value]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def _one_kind(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    kind = t.BINARY if all(x == t.BINARY for x in types[1:]) else t.STRING
    return [t.INT, *[kind] * (len(types) - 1)]


_S, _I = t.STRING, t.INT

register(
    # StaticInvoke of Base64.encode; the second argument says whether lines are cut
    Function("base64", _base64, accept(_S, t.BINARY, t.BOOL), arity=(1, 2), coerce=cast_to(t.BINARY, t.BOOL)),
    # failOnError must be false: to_binary is another function
    Function(
        "unbase64",
        each_distinct(lambda text: _decode_base64(text.encode())),
        accept(t.BINARY, _S),
        catalyst=("UnBase64",),
        parameters=CatalystParameters(fixed=(("failOnError", False),)),
        raises=ALWAYS_RAISES,
        coerce=cast_to(_S),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "soundex",
        each_distinct(_soundex_code),
        accept(_S, _S),
        catalyst=("SoundEx",),
        coerce=cast_to(_S),
        invalid_utf8=utf8_string.soundex,
    ),
    Function(
        "bin",
        each_distinct(lambda value: format(value & 0xFFFFFFFFFFFFFFFF, "b")),
        accept(_S, t.LONG),
        catalyst=("Bin",),
        coerce=cast_to(t.LONG),
    ),
    Function(
        "format_number",
        each_distinct(_format_decimal),
        accept(_S, t.is_numeric, _I),
        catalyst=("FormatNumber",),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        evaluates=(0, 1),
        check_values=_check_digits,
        coerce=lambda types: [types[0] if t.is_numeric(types[0]) else t.DOUBLE, types[1]],
    ),
    # the fourth argument is -1 where the call has three
    Function(
        "overlay",
        each_distinct(_overlay_string),
        accept(_S, _S, _S, _I),
        catalyst=("Overlay",),
        arity=(3, 4),
        coerce=cast_to(_S, _S, _I),
        calls=CallForm(columns=(0, 1, 2, 3), adds=(3, ", -1")),
        changes=(
            VersionChange(
                "repeats the text where position and length together pass 2147483647",
                lambda _, values: (
                    not all(isinstance(v, int) and abs(v) <= INT32_MAX // 4 for v in values[2:])
                ),
                patches=((4, 2, 1),),
            ),
        ),
        invalid_utf8=utf8_string.overlay,
    ),
    Function(
        "elt",
        _elt,
        accept(lambda types: types[1], _I, is_string_or_binary),
        catalyst=("Elt",),
        arity=(2, None),
        nullable=Nullability.OTHER_REASONS,
        raises=ANSI_RAISES,
        coerce=_one_kind,
        foldable=False,
        lazy=True,
        branching=Branching.NUMBERED,
        calls=ALL_COLUMNS,
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    # ElementAt over StringSplitSQL, with an empty text for parts that are not there
    Function(
        "split_part",
        each_distinct(_split_part),
        accept(_S, _S, _S, _I),
        arity=(3, 3),
        nullable=Nullability.OTHER_REASONS,
        raises=ALWAYS_RAISES,
        coerce=cast_to(_S, _S, _I),
        calls=THREE_COLUMNS,
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
