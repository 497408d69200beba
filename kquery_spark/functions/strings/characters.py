"""Conversions of strings: the codes of characters, and hexadecimal digits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.functions.core.arguments import numbers
from kquery_spark.functions.core.distinct import each_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    CallContext,
    CatalystParameters,
    Nullability,
    register,
)
from kquery_spark.functions.strings.entry import is_string_or_binary, string_function
from kquery_spark.kernels import utf8_string
from kquery_spark.kernels.text import build, layout, null_mask
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.vector import Data, Vector

_CHARACTERS = ["\0" if code == 0 else chr(code) for code in range(256)]


def _chr(args: Sequence[Vector], context: CallContext) -> Data:
    n = context.num_rows
    code = numbers(args[0], n)
    character_index = np.where(code < 0, 256, code & 0xFF)
    table = pa.array([*_CHARACTERS, ""])
    return table.take(pa.array(character_index, mask=null_mask(args[0].array(n))))


_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_NO_HEX = 16  # stands for a character that is not a hexadecimal digit
_HEX_VALUES = np.full(256, _NO_HEX, np.uint8)
_HEX_VALUES[_HEX] = _HEX_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


def _hex(args: Sequence[Vector], context: CallContext) -> Data:
    array = args[0].array(context.num_rows)
    mask = null_mask(array)
    if array.type == t.LONG:
        words = numbers(args[0], context.num_rows).astype(np.uint64)
        shifts = np.arange(60, -1, -4, dtype=np.uint64)
        cells = _HEX[(words[:, None] >> shifts) & np.uint64(15)]
        bounds = np.arange(0, 16 * len(words) + 1, 16)
        padded = build(bounds, cells.reshape(-1), mask)
        trimmed = pc.ascii_ltrim(padded, characters="0")
        return pc.if_else(pc.equal(trimmed, ""), "0", trimmed)
    offsets, raw = layout(array)
    part = raw[offsets[0] : offsets[-1]]
    reserve_rows(2 * len(part))
    cells = np.empty((len(part), 2), np.uint8)
    cells[:, 0], cells[:, 1] = _HEX[part >> 4], _HEX[part & 15]
    return build((offsets - offsets[0]) * 2, cells.reshape(-1), mask)


def from_hexadecimal(strings: pa.Array) -> pa.Array:
    """Decode hexadecimal strings, with a leading 0 if the number of digits is odd; NULL for other strings."""
    offsets, raw = layout(strings)
    bounds = offsets - offsets[0]
    digits = _HEX_VALUES[raw[offsets[0] : offsets[-1]]]
    others_before = np.concatenate(([0], np.cumsum(digits == _NO_HEX)))
    mask = others_before[bounds[1:]] > others_before[bounds[:-1]]
    if strings.null_count:
        mask |= null_mask(strings)
    lengths = np.diff(bounds)
    digits = np.insert(digits, bounds[:-1][lengths % 2 == 1], 0)
    byte_bounds = np.concatenate(([0], np.cumsum((lengths + 1) // 2)))
    spelled = np.asarray(digits[0::2] << 4 | digits[1::2], np.uint8)
    return build(byte_bounds, spelled, mask, t.BINARY)


def _unhex(args: Sequence[Vector], context: CallContext) -> Data:
    return from_hexadecimal(args[0].array(context.num_rows))


register(
    string_function(
        "ascii",
        each_distinct(lambda s: ord(s[0]) if s else 0),
        t.INT,
        "Ascii",
        invalid_utf8=utf8_string.ascii_code,
    ),
    string_function("chr", _chr, t.STRING, "Chr", (t.LONG,), aliases=("char",)),
    string_function(
        "hex",
        _hex,
        t.STRING,
        "Hex",
        (lambda dtype: is_string_or_binary(dtype) or dtype == t.LONG,),
        coerce=lambda types: [
            t.LONG if t.is_numeric(types[0]) else types[0] if is_string_or_binary(types[0]) else t.STRING
        ],
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    # Catalyst's failOnError is false for the SQL function; with it the class is to_binary(..., 'hex')
    string_function(
        "unhex",
        _unhex,
        t.BINARY,
        "Unhex",
        nullable=Nullability.OTHER_REASONS,
        parameters=CatalystParameters(fixed=(("failOnError", False),)),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
