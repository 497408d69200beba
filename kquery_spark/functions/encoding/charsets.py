"""ENCODE and DECODE by a character set."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import ExecutionError, Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.core.attempts import null_on_error_if_try
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    COLUMN,
    CallContext,
    EvalMode,
    Function,
    JavaMethod,
    Nullability,
    VersionChange,
    accept,
    cast_to,
    register,
)
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_DECODED = {"UTF-8": "utf-8", "US-ASCII": "ascii", "ISO-8859-1": "latin-1"}
_ENCODED = {**_DECODED, "UTF-16BE": "utf-16-be", "UTF-16LE": "utf-16-le", "UTF-16": "utf-16-be"}
_NO_LEGACY = ((2, False), (3, False))  # spark.sql.legacy.javaCharsets and ...codingErrorAction


def _encode(args: Sequence[Vector], context: CallContext) -> Data:
    """The bytes of a string; one that the character set cannot spell raises."""
    name = args[1].data.as_py()
    codec = _ENCODED[name.upper()]
    mark = b"\xfe\xff" if name.upper() == "UTF-16" else b""

    def evaluate(text: str) -> bytes:
        try:
            encoded = text.encode(codec)
        except UnicodeEncodeError:
            raise _bad_coding("encode", name) from None
        return mark + encoded if encoded else encoded

    if codec == "utf-8":
        return args[0].array(context.num_rows).cast(pa.binary())
    return per_distinct(null_on_error_if_try(evaluate, context), args[:1], context)


def _decode(args: Sequence[Vector], context: CallContext) -> Data:
    """The string that bytes spell; others raise."""
    name = args[1].data.as_py()
    codec = _DECODED[name.upper()]

    def evaluate(value: bytes) -> str:
        try:
            return value.decode(codec)
        except UnicodeDecodeError:
            raise _bad_coding("decode", name) from None

    if codec == "utf-8":
        try:
            return args[0].array(context.num_rows).cast(t.STRING)  # checks the bytes
        except pa.ArrowInvalid:
            pass
    return per_distinct(null_on_error_if_try(evaluate, context), args[:1], context)


def _bad_coding(function: str, charset: str) -> ExecutionError:
    return ExecutionError(
        "MALFORMED_CHARACTER_CODING", f"Invalid value found when performing `{function}` with {charset}"
    )


def _check_encoded(values: Sequence[object]) -> None:
    _check(values[1], _ENCODED, "ENCODE")


def _check_decoded(values: Sequence[object]) -> None:
    _check(values[1], _DECODED, "DECODE")


def _check(charset: object, known: dict[str, str], function: str) -> None:
    if charset is COLUMN:
        raise Unsupported(f"the character set of {function} must be a literal")
    if not isinstance(charset, str) or charset.upper() not in known:
        raise Unsupported(f"{function} by the character set {charset} is not supported")


_RAISES = frozenset({EvalMode.ANSI, EvalMode.LEGACY})
_REPLACES = (VersionChange("replaces what a character set does not have", since=(4, 0)),)

register(
    Function(
        "encode",
        _encode,
        accept(t.BINARY, t.STRING),
        java=(JavaMethod("Encode", "encode", _NO_LEGACY),),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        raises=_RAISES,
        safe_for=lambda types, values, mode: (
            isinstance(values[1], str) and values[1].upper().startswith("UTF")
        ),
        coerce=cast_to(t.STRING),
        check_values=_check_encoded,
        changes=_REPLACES,
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "decode",
        _decode,
        accept(t.STRING, t.BINARY, t.STRING),
        java=(JavaMethod("StringDecode", "decode", _NO_LEGACY),),
        arity=(2, 2),
        nullable=Nullability.OTHER_REASONS,
        raises=_RAISES,
        safe_for=lambda types, values, mode: values[1] == "ISO-8859-1",
        coerce=cast_to(t.BINARY, t.STRING),
        check_values=_check_decoded,
        changes=_REPLACES,
        calls=CallForm(columns=(0,)),
    ),
)
