"""String functions without patterns. As in Spark, positions and lengths count characters (code points)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.call_form import TWO_COLUMNS, CallForm
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    CallContext,
    CatalystParameters,
    Coercion,
    Function,
    Nullability,
    TypeRule,
    VersionChange,
    accept,
    cast_to,
    register,
)
from kquery_spark.kernels import utf8_string
from kquery_spark.kernels.text import Characters, build, gather, if_else, layout, null_mask
from kquery_spark.run_control import bounding_control
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.units import INT32_MAX
from kquery_spark.types.vector import Data, Int64s, Vector

TEXT_MATCH_SELECTIVITY = (
    0.1  # expected share of rows whose string matches a pattern or contains another string
)


def stringy(dtype: pa.DataType) -> bool:
    """Return whether the type is string or binary."""
    return bool(dtype in (t.STRING, t.BINARY))


def _text_or_binary(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [dtype if stringy(dtype) else t.STRING for dtype in types]


def numbers(vector: Vector, length: int) -> Int64s:
    """The values of an integer argument as int64, one per row; 0 for NULL."""
    array = vector.array(length)
    return np.asarray(
        (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False), np.int64
    )


def joint_mask(args: Sequence[Vector], length: int) -> Any:
    """A mask that is True if any argument is NULL; None if nothing is NULL."""
    masks: list[Any] = [null_mask(a.array(length)) for a in args if a.null_count]
    return np.logical_or.reduce(masks) if masks else None


def dense_mask(args: Sequence[Vector], length: int) -> npt.NDArray[np.bool_]:
    """A mask that is True if any argument is NULL, like ``joint_mask``, but never None."""
    mask = joint_mask(args, length)
    return np.zeros(length, np.bool_) if mask is None else np.asarray(mask, np.bool_)


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
    """The first and last (exclusive) index of ``substring(position, count)``, clipped to the string."""
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


_MAX_TEXT_BYTES = 64 << 20
_MAX_BATCH_TEXT_BYTES = 1 << 30

# --- joining and repeating ------------------------------------------------------------------------


def concat(args: Sequence[Vector], context: CallContext) -> Data:
    """Concatenate strings or binaries."""
    if not args:
        return pa.scalar("")
    empty = pa.scalar("" if context.dtype == t.STRING else b"", context.dtype)
    return pc.binary_join_element_wise(*[a.data for a in args], empty)


def concat_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """The result type of ``concat``."""
    if any(not stringy(dtype) or dtype != types[0] for dtype in types):
        raise PlanError(f"cannot concat {', '.join(map(t.spark_name, types))}")
    return types[0] if types else t.STRING


def coerce_concat(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Return the types to which ``concat`` casts its arguments."""
    return types if types and all(dtype == t.BINARY for dtype in types) else [t.STRING] * len(types)


def _concat_ws(args: Sequence[Vector], context: CallContext) -> Data:
    """Join the strings that are not NULL; array arguments are not accepted."""
    separator, *parts = args
    n = context.num_rows
    if not parts:
        return pc.if_else(pc.is_valid(separator.array(n)), "", pa.scalar(None, t.STRING))
    if len(parts) == 1:
        joined = pc.fill_null(parts[0].array(n), "")
        return if_else(pc.is_valid(separator.array(n)), joined, pa.scalar(None, t.STRING))
    first, *others = (p.array(n) for p in parts)
    if all(p.null_count for p in (first, *others)):  # Arrow 26 omits rows in which all strings are NULL
        nothing = reduce(pc.and_, [p.is_null() for p in (first, *others)])
        first = pc.if_else(nothing, "", first)
    joined = pc.binary_join_element_wise(first, *others, separator.array(n), null_handling="skip")
    if separator.null_count:
        joined = if_else(pc.is_valid(separator.array(n)), joined, pa.scalar(None, t.STRING))
    return joined


def _check_text_bytes(lengths: Data) -> None:
    """Raise Unsupported before building strings that could exceed any memory from a few characters of a query."""
    if isinstance(lengths, pa.Scalar):
        lengths = pa.array([lengths.as_py()], pa.float64())
    largest, total = pc.max(lengths).as_py() or 0, pc.sum(lengths).as_py() or 0
    if largest > _MAX_TEXT_BYTES or total > _MAX_BATCH_TEXT_BYTES:
        raise Unsupported(
            f"repeated or padded strings of more than {_MAX_TEXT_BYTES >> 20} MiB, or of more than "
            f"{_MAX_BATCH_TEXT_BYTES >> 20} MiB in a batch, are not supported"
        )


def _repeat(args: Sequence[Vector], context: CallContext) -> Data:
    count = args[1].data
    clipped = pc.max_element_wise(count, pa.scalar(0, count.type), skip_nulls=False)
    nbytes = pc.multiply(pc.binary_length(args[0].data).cast(pa.float64()), clipped.cast(pa.float64()))
    reserve_rows(int(pc.sum(nbytes).as_py() or 0))
    _check_text_bytes(nbytes)
    repeated = pc.binary_repeat(args[0].data, clipped)
    # Arrow returns no data buffer if all strings are empty
    if isinstance(repeated, pa.Array) and repeated.buffers()[2] is None:
        return build(np.zeros(len(repeated) + 1, np.int64), np.zeros(0, np.uint8), null_mask(repeated))
    return repeated


def _space(args: Sequence[Vector], context: CallContext) -> Data:
    return _repeat([Vector(t.STRING, pa.scalar(" ")), args[0]], context)


def _pad(left: bool) -> Callable[[Sequence[Vector], CallContext], Data]:
    def evaluate(value: str, width: int, pad: str = " ") -> str:
        missing = width - len(value)
        if missing <= 0 or not pad:
            return value[: max(width, 0)]
        filler = (pad * (missing // len(pad) + 1))[:missing]
        return filler + value if left else value + filler

    arrow = pc.utf8_lpad if left else pc.utf8_rpad

    def run(args: Sequence[Vector], context: CallContext) -> Data:
        width = args[1]
        pad = args[2] if len(args) > 2 else Vector(t.STRING, pa.scalar(" "))
        if bounding_control() is not None:
            widths = numbers(Vector(t.INT, width.data), context.num_rows)
            reserve_rows(int(np.maximum(widths, 0).sum()))
        if width.is_scalar and width.data.is_valid and pad.is_scalar and pad.data.is_valid:
            cells, filler = max(width.data.as_py(), 0), pad.data.as_py()
            if len(filler) == 1 and cells < 10_000:
                return pc.utf8_slice_codeunits(arrow(args[0].data, width=cells, padding=filler), 0, cells)
        _check_text_bytes(width.data.cast(pa.float64()))
        return per_distinct(evaluate, args, context)

    return run


# --- characters -----------------------------------------------------------------------------------


def _ascii(args: Sequence[Vector], context: CallContext) -> Data:
    return per_distinct(lambda s: ord(s[0]) if s else 0, args, context)


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


def text_entry(
    name: str,
    kernel: Any,
    result: pa.DataType | TypeRule,
    catalyst: str,
    allowed: tuple[Any, ...] = (t.STRING,),
    arity: tuple[int, int | None] | None = None,
    coerce: Coercion | None = None,
    **options: Any,
) -> Function:
    """Build the entry of a string function. allowed: for each argument its type, or a predicate of types."""
    counts = arity or (len(allowed), len(allowed))
    targets = tuple(a for a in allowed if isinstance(a, pa.DataType))
    rule = accept(result, *allowed)
    casts = coerce or (cast_to(*targets) if len(targets) == len(allowed) else _text_or_binary)
    return Function(
        name, kernel, rule, catalyst=(catalyst,) if catalyst else (), arity=counts, coerce=casts, **options
    )


def _first(types: Sequence[pa.DataType]) -> pa.DataType:
    return types[0]


def _coerce_substring(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    return [types[0] if stringy(types[0]) else t.STRING, t.INT, t.INT][: len(types)]


def _trimming(side: str) -> CallForm:
    return CallForm(columns=(0, 1), trims=side, shape=(2, f"TRIM({side} {{0}} FROM {{1}})"))


_S, _I = t.STRING, t.INT
_PADDING = CallForm(adds=(2, ",  "))

_PADDING_CHANGE = (
    VersionChange(
        "raises an error for very negative lengths",
        lambda _, values: not (isinstance(values[1], int) and values[1] >= 0),
        patches=((4, 0, 5), (4, 1, 4), (4, 2, 1)),
    ),
)

register(
    text_entry(
        "length",
        _length,
        _I,
        "Length",
        (stringy,),
        aliases=("char_length", "character_length", "len"),
        invalid_utf8=utf8_string.length,
    ),
    text_entry("octet_length", _octet_length, _I, "OctetLength", (stringy,), invalid_utf8=InvalidUtf8.BYTES),
    text_entry("bit_length", _bit_length, _I, "BitLength", (stringy,), invalid_utf8=InvalidUtf8.BYTES),
    # Catalyst's Substring always has three children; substr(s, p) has Int.MaxValue as the third
    text_entry(
        "substring",
        _substring,
        _first,
        "Substring",
        (stringy, _I, _I),
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
    text_entry(
        "left",
        _left_characters,
        _first,
        "",
        (stringy, _I),
        coerce=_coerce_substring,
        calls=TWO_COLUMNS,
        invalid_utf8=utf8_string.first_characters,
    ),
    text_entry(
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
    text_entry(
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
    text_entry(
        "ltrim",
        _trim("left"),
        _S,
        "StringTrimLeft",
        (_S, _S),
        (1, 2),
        calls=_trimming("LEADING"),
        invalid_utf8=utf8_string.trim_left,
    ),
    text_entry(
        "rtrim",
        _trim("right"),
        _S,
        "StringTrimRight",
        (_S, _S),
        (1, 2),
        calls=_trimming("TRAILING"),
        invalid_utf8=utf8_string.trim_right,
    ),
    text_entry(
        "concat_ws",
        _concat_ws,
        _S,
        "ConcatWs",
        (_S,),
        (1, None),
        nullable=Nullability.FIRST_ARGUMENT,
        calls=CallForm(columns_from=1),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    text_entry(
        "repeat", _repeat, _S, "StringRepeat", (_S, _I), calls=TWO_COLUMNS, invalid_utf8=InvalidUtf8.BYTES
    ),
    text_entry("space", _space, _S, "StringSpace", (_I,)),
    text_entry(
        "lpad",
        _pad(True),
        _S,
        "StringLPad",
        (_S, _I, _S),
        (2, 3),
        calls=_PADDING,
        changes=_PADDING_CHANGE,
        invalid_utf8=utf8_string.lpad,
    ),
    text_entry(
        "rpad",
        _pad(False),
        _S,
        "StringRPad",
        (_S, _I, _S),
        (2, 3),
        calls=_PADDING,
        changes=_PADDING_CHANGE,
        invalid_utf8=utf8_string.rpad,
    ),
    text_entry("ascii", _ascii, _I, "Ascii", invalid_utf8=utf8_string.ascii_code),
    text_entry("chr", _chr, _S, "Chr", (t.LONG,), aliases=("char",)),
    text_entry(
        "hex",
        _hex,
        _S,
        "Hex",
        (lambda dtype: stringy(dtype) or dtype == t.LONG,),
        coerce=lambda types: [
            t.LONG if t.is_numeric(types[0]) else types[0] if stringy(types[0]) else t.STRING
        ],
        invalid_utf8=InvalidUtf8.BYTES,
    ),
    # Catalyst's failOnError is false for the SQL function; with it the class is to_binary(..., 'hex')
    text_entry(
        "unhex",
        _unhex,
        t.BINARY,
        "Unhex",
        nullable=Nullability.OTHER_REASONS,
        parameters=CatalystParameters(fixed=(("failOnError", False),)),
        invalid_utf8=InvalidUtf8.BYTES,
    ),
)
