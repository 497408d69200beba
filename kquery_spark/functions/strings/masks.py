"""MASK, which replaces the characters of a string by their kind, and QUOTE."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import Unsupported
from kquery_spark.functions.call_form import CallForm
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    COLUMN,
    CallContext,
    Function,
    JavaMethod,
    Nullability,
    VersionChange,
    accept,
    cast_to,
    register,
)
from kquery_spark.kernels.text import replace_all
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data, Vector

_DEFAULTS = ("X", "x", "n", None)
_KINDS = {"Lu": 0, "Ll": 1, "Nd": 2}
_OTHER = 3


class _Masks(dict[int, str]):
    """Maps code points to replacements, as ``str.translate`` requires; a replacement of None keeps the character."""

    def __init__(self, replacements: Sequence[str | None]) -> None:
        super().__init__()
        self._replacements = replacements

    def __missing__(self, code: int) -> str:
        character = chr(code)
        mask = self[code] = self._replacements[_kind(character)] or character
        return mask


def _kind(character: str) -> int:
    category = unicodedata.category(character)
    kind = _KINDS.get(category, _OTHER)
    if character > "\x7f" and kind != _KINDS.get(unicodedata.ucd_3_2_0.category(character), _OTHER):
        raise Unsupported(
            "the category of a character that is newer than Unicode 3.2 depends on the version of the JVM"
        )
    return kind


def _mask(args: Sequence[Vector], context: CallContext) -> Data:
    """Replace upper-case letters, lower-case letters, digits, and other characters."""
    given = [a.data.as_py() for a in args[1:]]
    masks = _Masks((*given, *_DEFAULTS[len(given) :]))
    return per_distinct(lambda text: text.translate(masks), args[:1], context)


def _check_masks(values: Sequence[object]) -> None:
    for value in values[1:]:
        if value is COLUMN:
            raise Unsupported("the characters of MASK must be literals")
        if isinstance(value, str) and (len(value) != 1 or value in "\0\uffff" or value > "\uffff"):
            raise Unsupported(f"MASK by {value!r} is not supported")


def _quote(args: Sequence[Vector], context: CallContext) -> Data:
    """Put the string in single quotes, and escape single quotes in it by backslashes."""
    escaped = replace_all(args[0].array(context.num_rows), "'", "\\'")
    return pc.binary_join_element_wise("'", escaped, "'", pa.scalar("", t.STRING))


register(
    Function(
        "mask",
        _mask,
        accept(t.STRING, t.STRING),
        catalyst=("Mask",),
        arity=(1, 5),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.STRING),
        check_values=_check_masks,
        calls=CallForm(columns=(0, 1, 2, 3, 4), adds=(1, ", X, x, n, NULL")),
        changes=(
            VersionChange(
                "masks a character past 16 bits as two",
                lambda _, values: any(v is not None for v in values[4:]),
            ),
        ),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
    Function(
        "quote",
        _quote,
        accept(t.STRING, t.STRING),
        java=(JavaMethod("ExpressionImplUtils", "quote"),),
        nullable=Nullability.OTHER_REASONS,
        coerce=cast_to(t.STRING),
        changes=(VersionChange("has no such function", since=(4, 1)),),
        invalid_utf8=InvalidUtf8.REPLACED,
    ),
)
