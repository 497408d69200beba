"""CONCAT, CONCAT_WS, REPEAT, SPACE and the padding of strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.functions.call_form import TWO_COLUMNS, CallForm
from kquery_spark.functions.core.arguments import numbers
from kquery_spark.functions.core.distinct import per_distinct
from kquery_spark.functions.invalid_utf8 import InvalidUtf8
from kquery_spark.functions.registry import (
    CallContext,
    Nullability,
    VersionChange,
    register,
)
from kquery_spark.functions.strings.entry import is_string_or_binary, string_function
from kquery_spark.kernels import utf8_string
from kquery_spark.kernels.text import build, if_else, null_mask
from kquery_spark.types import names as t
from kquery_spark.types.sizes import reserve_rows
from kquery_spark.types.vector import Data, Vector

# the limits of the results of repeat, lpad, and rpad: of one string, and of those of a batch
_MAX_RESULT_BYTES, _MAX_BATCH_BYTES = 64 << 20, 1 << 30
_MAX_BYTES_PER_CHARACTER = 4
_S, _I = t.STRING, t.INT
_PADDING = CallForm(adds=(2, ",  "))

_PADDING_CHANGE = (
    VersionChange(
        "raises an error for very negative lengths",
        lambda _, values: not (isinstance(values[1], int) and values[1] >= 0),
        patches=((4, 0, 5), (4, 1, 4), (4, 2, 1)),
    ),
)


def concat(args: Sequence[Vector], context: CallContext) -> Data:
    """Concatenate strings or binaries."""
    if not args:
        return pa.scalar("")
    empty = pa.scalar("" if context.dtype == t.STRING else b"", context.dtype)
    return pc.binary_join_element_wise(*[a.data for a in args], empty)


def concat_type(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the result type of ``concat``. Raises PlanError unless all arguments are strings or all are binary."""
    if any(not is_string_or_binary(dtype) or dtype != types[0] for dtype in types):
        raise PlanError(f"cannot concat {', '.join(map(t.spark_name, types))}")
    return types[0] if types else t.STRING


def coerce_concat(types: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
    """Return the types to which ``concat`` casts its arguments."""
    return types if types and all(dtype == t.BINARY for dtype in types) else [t.STRING] * len(types)


def _total_bytes(vector: Vector, n: int) -> int:
    """Return the bytes of the strings of ``n`` rows."""
    total: int = pc.sum(pc.binary_length(vector.data)).as_py() or 0
    return total * n if vector.is_scalar else total


def _concat_ws(args: Sequence[Vector], context: CallContext) -> Data:
    """Join the strings that are not NULL. Spark also accepts arrays; the engine does not."""
    separator, *parts = args
    n = context.num_rows
    if not parts:
        return pc.if_else(pc.is_valid(separator.array(n)), "", pa.scalar(None, t.STRING))
    if len(parts) == 1:
        joined = pc.fill_null(parts[0].array(n), "")
        return if_else(pc.is_valid(separator.array(n)), joined, pa.scalar(None, t.STRING))
    nbytes = sum(_total_bytes(p, n) for p in parts) + (len(parts) - 1) * _total_bytes(separator, n)
    reserve_rows(nbytes)
    first, *others = (p.array(n) for p in parts)
    if all(p.null_count for p in (first, *others)):  # Arrow 26 omits rows in which all strings are NULL
        nothing = reduce(pc.and_, [p.is_null() for p in (first, *others)])
        first = pc.if_else(nothing, "", first)
    joined = pc.binary_join_element_wise(first, *others, separator.array(n), null_handling="skip")
    if separator.null_count:
        joined = if_else(pc.is_valid(separator.array(n)), joined, pa.scalar(None, t.STRING))
    return joined


def _check_result_bytes(lengths: Data) -> None:
    """Raise Unsupported for results that are too large: a few characters of a query could otherwise fill any memory."""
    if isinstance(lengths, pa.Scalar):
        lengths = pa.array([lengths.as_py()], pa.float64())
    largest, total = pc.max(lengths).as_py() or 0, pc.sum(lengths).as_py() or 0
    if largest > _MAX_RESULT_BYTES or total > _MAX_BATCH_BYTES:
        raise Unsupported(
            f"repeated or padded strings of more than {_MAX_RESULT_BYTES >> 20} MiB, or of more than "
            f"{_MAX_BATCH_BYTES >> 20} MiB in a batch, are not supported"
        )


def _repeat(args: Sequence[Vector], context: CallContext) -> Data:
    count = args[1].data
    clipped = pc.max_element_wise(count, pa.scalar(0, count.type), skip_nulls=False)
    nbytes = pc.multiply(pc.binary_length(args[0].data).cast(pa.float64()), clipped.cast(pa.float64()))
    reserve_rows(int(pc.sum(nbytes).as_py() or 0), check=lambda: _check_result_bytes(nbytes))
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
        widths = np.maximum(numbers(width, context.num_rows), 0)
        filler = pad.data.as_py() if pad.is_scalar else None
        is_ascii = filler is not None and filler.isascii()
        lengths = pa.array(widths if is_ascii else _MAX_BYTES_PER_CHARACTER * widths)
        reserve_rows(int(widths.sum()), check=lambda: _check_result_bytes(lengths))
        if width.is_scalar and width.data.is_valid and filler is not None and len(filler) == 1:
            cells = max(width.data.as_py(), 0)
            if cells < 10_000:
                return pc.utf8_slice_codeunits(arrow(args[0].data, width=cells, padding=filler), 0, cells)
        return per_distinct(evaluate, args, context)

    return run


register(
    string_function(
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
    string_function(
        "repeat", _repeat, _S, "StringRepeat", (_S, _I), calls=TWO_COLUMNS, invalid_utf8=InvalidUtf8.BYTES
    ),
    string_function("space", _space, _S, "StringSpace", (_I,)),
    string_function(
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
    string_function(
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
)
