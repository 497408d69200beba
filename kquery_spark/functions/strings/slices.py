"""Lengths and parts of strings. As in Spark, positions and lengths count characters (code points)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.call_form import TWO_COLUMNS, CallForm
from kquery_spark.functions.core.arguments import joint_mask, numbers
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    CallContext,
    Nullability,
    VersionChange,
    first_argument_type,
    register,
)
from kquery_spark.functions.strings.entry import is_string_or_binary, string_function
from kquery_spark.kernels import utf8_string
from kquery_spark.kernels.text import Characters, gather
from kquery_spark.types import names as t
from kquery_spark.types.units import INT32_MAX
from kquery_spark.types.vector import Data, Int64s, Vector

# --- lengths --------------------------------------------------------------------------------------


def _length(args: Sequence[Vector], context: CallContext) -> Data:
    (child,) = args
    return pc.utf8_length(child.data) if child.dtype == t.STRING else pc.binary_length(child.data)


def _octet_length(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.binary_length(args[0].data)


def _bit_length(args: Sequence[Vector], context: CallContext) -> Data:
    return pc.multiply(pc.binary_length(args[0].data), pa.scalar(8, t.INT))


# --- slices ---------------------------------------------------------------------------------------


def _window(size: Int64s, position: Int64s, count: Int64s) -> tuple[Int64s, Int64s]:
    """Return the first and last (exclusive) index of ``substring(position, count)``, clipped to the string."""
    start = np.where(position > 0, position - 1, np.where(position < 0, size + position, 0))
    end = np.clip(start + count, -(2**31), INT32_MAX)
    return np.clip(start, 0, size), np.clip(end, 0, size)


def _substring(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    array = args[0].array(n)
    count = numbers(args[2], n) if len(args) > 2 else np.full(n, INT32_MAX)
    return _slice(array, numbers(args[1], n), count, joint_mask(args, n))


def _slice(array: pa.Array, position: Int64s, count: Int64s, mask: Any) -> pa.Array:
    characters = Characters(array)
    start, end = _window(characters.lengths, position, count)
    end = np.maximum(start, end)
    return gather(characters.raw, characters.byte(start), characters.byte(end), mask, array.type)


def _left_characters(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    return _slice(args[0].array(n), np.ones(n, np.int64), numbers(args[1], n), joint_mask(args, n))


def _right_characters(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    count = numbers(args[1], n)
    array = args[0].array(n)
    return _slice(
        array, np.where(count > 0, -count, 1), np.where(count > 0, INT32_MAX, 0), joint_mask(args, n)
    )


def _trim(sides: str) -> Callable[[Sequence[Vector], CallContext], Data]:
    arrow = {"both": pc.utf8_trim, "left": pc.utf8_ltrim, "right": pc.utf8_rtrim}[sides]
    python = {"both": str.strip, "left": str.lstrip, "right": str.rstrip}[sides]

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        if len(args) == 1:
            return arrow(args[0].data, characters=" ")
        characters = args[1]
        if characters.is_scalar and characters.data.is_valid:
            trim_characters = characters.data.as_py()
            return arrow(args[0].data, characters=trim_characters) if trim_characters else args[0].data
        return per_distinct(lambda s, c: python(s, c) if c else s, args, context)

    return run


def _coerce_substring(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [types[0] if is_string_or_binary(types[0]) else t.STRING, t.INT, t.INT][: len(types)]


def _trimming(side: str) -> CallForm:
    return CallForm(columns=(0, 1), trims=side, shape=(2, f"TRIM({side} {{0}} FROM {{1}})"))


_S, _I = t.STRING, t.INT

register(
    string_function(
        "length",
        _length,
        _I,
        "Length",
        (is_string_or_binary,),
        aliases=("char_length", "character_length", "len"),
        invalid_utf8=utf8_string.length,
    ),
    string_function(
        "octet_length",
        _octet_length,
        _I,
        "OctetLength",
        (is_string_or_binary,),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    string_function(
        "bit_length", _bit_length, _I, "BitLength", (is_string_or_binary,), invalid_utf8=InvalidUtf8.BYTES
    ),
    # Catalyst's Substring always has three children; substr(s, p) has Int.MaxValue as the third
    string_function(
        "substring",
        _substring,
        first_argument_type,
        "Substring",
        (is_string_or_binary, _I, _I),
        (2, 3),
        _coerce_substring,
        aliases=("substr",),
        calls=CallForm(columns=(0, 1, 2), adds=(2, ", 2147483647")),
        changes=(
            VersionChange(
                "starts elsewhere where a position lies before the first byte of binary",
                lambda types, _: types[0] == t.BINARY,
                patches=((4, 0, 5), (4, 1, 4), (4, 2, 1)),
            ),
        ),
        invalid_utf8=utf8_string.substring,
    ),
    # LEFT and RIGHT reach the importer as Substring and If(... Substring)
    string_function(
        "left",
        _left_characters,
        first_argument_type,
        "",
        (is_string_or_binary, _I),
        coerce=_coerce_substring,
        calls=TWO_COLUMNS,
        invalid_utf8=utf8_string.first_characters,
    ),
    string_function(
        "right",
        _right_characters,
        _S,
        "",
        (_S, _I),
        nullable=Nullability.OTHER_REASONS,
        calls=TWO_COLUMNS,
        invalid_utf8=utf8_string.last_characters,
    ),
    # the second argument holds the characters to remove: Catalyst's children are (srcStr, trimStr), SQL's order for
    # ltrim/rtrim(trimStr, str) is the other way round
    string_function(
        "trim",
        _trim("both"),
        _S,
        "StringTrim",
        (_S, _S),
        (1, 2),
        aliases=("btrim",),
        calls=_trimming("BOTH"),
        alias_calls=(("btrim", TWO_COLUMNS),),
        invalid_utf8=utf8_string.trim,
    ),
    string_function(
        "ltrim",
        _trim("left"),
        _S,
        "StringTrimLeft",
        (_S, _S),
        (1, 2),
        calls=_trimming("LEADING"),
        invalid_utf8=utf8_string.trim_left,
    ),
    string_function(
        "rtrim",
        _trim("right"),
        _S,
        "StringTrimRight",
        (_S, _S),
        (1, 2),
        calls=_trimming("TRAILING"),
        invalid_utf8=utf8_string.trim_right,
    ),
)
