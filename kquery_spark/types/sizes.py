"""Checks before allocations whose size depends on values: gathers, repeated values, values per row.

Reservations cost nothing without a limit of bytes (see ``run_control``). Runs in Spark's driver have one, and so have
functions that can run on a part of a batch (``batch.run_in_parts``). Checks that raise BatchTooLarge run everywhere, because
the offsets of Arrow's strings and lists have 32 bits. ``reserve_replacements`` does both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.errors import BatchTooLarge
from kquery_spark.run_control import bounding_control
from kquery_spark.types.part_control import PartTooLarge
from kquery_spark.types.units import INT32_MAX

Counts = npt.NDArray[np.int64]
MAX_STRING_BYTES = INT32_MAX
"""The largest number of bytes of all strings of one array, because their offsets have 32 bits."""
_OVERFLOW_MESSAGES = (
    "overflowed binary array capacity",
    "offset overflow while concatenating",
    "input array too large",
)
"""Parts of messages: ``take``, ``concat_arrays``, and ``cast`` raise ArrowInvalid instead of ArrowCapacityError."""


def row_bytes(array: pa.Array) -> Counts:
    """Bytes that each row of an array takes where it is copied."""
    dtype = array.type
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return 4 + np.diff(_offsets(array))
    if pa.types.is_struct(dtype):
        return sum(
            (row_bytes(array.field(i)) for i in range(dtype.num_fields)), np.ones(len(array), np.int64)
        )
    if pa.types.is_list(dtype) or pa.types.is_map(dtype):
        children = [array.values] if pa.types.is_list(dtype) else [array.keys, array.items]
        offsets, sizes = _offsets(array), np.full(len(array), 4, np.int64)
        for child in children:
            ends = np.concatenate(([0], np.cumsum(row_bytes(child))))
            sizes += np.diff(ends[offsets])
        return sizes
    return np.full(len(array), fixed_bytes(dtype), np.int64)


def reserve_gather(columns: Iterable[pa.Array], rows: Any) -> None:
    """Reserve memory before ``column.take(rows)`` of each column.

    rows: numpy or Arrow indices, which may repeat; NULL and negative indices stand for no row.
    """
    control = bounding_control()
    if control is None:
        return
    total = 0
    for column in columns:
        if not len(column):
            continue
        if column.nbytes * len(rows) <= control.negligible_bytes or not has_offsets(column.type):
            total += len(rows) * max(fixed_bytes(column.type), 1)
            continue
        sizes = row_bytes(column)
        most = int(sizes.max())
        if most * len(rows) <= control.negligible_bytes:
            total += most * len(rows)
            continue
        if isinstance(rows, pa.Array):
            rows = rows.fill_null(-1).to_numpy(zero_copy_only=False)
        total += int(sizes[np.maximum(rows, 0)].sum())
    control.reserve(total)


def reserve_repeats(values: Sequence[Any], length: int) -> None:
    """Reserve memory before each pa.Scalar among ``values`` is repeated for, or combined with, ``length`` rows."""
    control = bounding_control()
    if control is not None:
        control.reserve(length * sum(map(_scalar_bytes, values)))


def reserve_rows(count: int, width: int = 1, check: Callable[[], None] | None = None) -> None:
    """Reserve memory before building an array of ``count`` values of ``width`` bytes.

    check: raises Unsupported for sizes that the function declines. It runs after the limit of the run was checked. If the
    array is too large for a part of a batch, ``check`` comes first, so that a size that is declined is never divided.
    """
    control = bounding_control()
    try:
        if control is not None:
            control.reserve(count * width)
    except PartTooLarge:
        if check is not None:
            check()
        raise
    if check is not None:
        check()


def reserve_replacements(
    strings: Any, replacement_bytes: int, count: Callable[[], Any], copies: int = 0
) -> None:
    """Reserve memory before each match in ``strings`` is replaced.

    Raises BatchTooLarge if the result may have more than 2 GiB; the bytes that are replaced are not subtracted. Arrow's
    replacement kernels do not check for overflow of the 32-bit offsets: the offsets become negative, and the process can
    crash. replacement_bytes: the number of bytes that replace a match. count: returns the number of matches in each string.
    copies: how often the replacement contains a group of the match. Matches do not overlap, so each copy adds at most the
    bytes of ``strings``.

    Each match must have at least one byte. ``count`` is not called if the result would be small enough even if every byte
    were a match.
    """
    control = bounding_control()
    nbytes = pc.sum(pc.binary_length(strings)).as_py() or 0
    small_bytes = MAX_STRING_BYTES if control is None else min(MAX_STRING_BYTES, control.negligible_bytes)
    if nbytes * (1 + copies + replacement_bytes) <= small_bytes:
        return
    added = (pc.sum(count()).as_py() or 0) * replacement_bytes + copies * nbytes
    if control is not None:
        control.reserve(added)
    check_string_bytes(nbytes + added, "replacements in the strings of a batch")


def check_string_bytes(nbytes: int, subject: str) -> None:
    """Raise BatchTooLarge if one array cannot have strings of this size. subject: a plural noun for the message."""
    if nbytes > MAX_STRING_BYTES:
        raise BatchTooLarge(f"{subject} that take more than 2 GiB are not supported")


def check_elements(count: int) -> None:
    """Raise BatchTooLarge if the lists or maps of one array cannot have this number of elements."""
    if count > INT32_MAX:
        raise BatchTooLarge("arrays or maps of a batch with 2^31 elements or more are not supported")


def raise_if_too_large(error: pa.ArrowException, subject: str) -> None:
    """Raise BatchTooLarge if Arrow could not make a result because its offsets do not fit into 32 bits.

    subject: the function or operator that the message names.
    """
    if is_too_large(error):
        raise BatchTooLarge(
            f"{subject} with a result of more than 2 GiB in a batch is not supported ({error})"
        ) from error


def is_too_large(error: Exception) -> bool:
    """Return True if the error says that a result does not fit into the 32-bit offsets of one array."""
    if isinstance(error, BatchTooLarge | pa.ArrowCapacityError):
        return True
    return isinstance(error, pa.ArrowInvalid) and any(part in str(error) for part in _OVERFLOW_MESSAGES)


def _offsets(array: pa.Array) -> Counts:
    if not len(array):
        return np.zeros(1, np.int64)
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)


def _scalar_bytes(value: Any) -> int:
    if not isinstance(value, pa.Scalar) or not value.is_valid:
        return 0
    if pa.types.is_string(value.type) or pa.types.is_binary(value.type):
        return int(value.as_buffer().size)
    return int(pa.repeat(value, 1).nbytes) if has_offsets(value.type) else 8


def has_offsets(dtype: pa.DataType) -> bool:
    """Return True for strings, binary and nested types, whose arrays may have 32-bit offsets."""
    kinds = pa.types
    return bool(
        kinds.is_string(dtype) or kinds.is_binary(dtype) or kinds.is_nested(dtype) or kinds.is_map(dtype)
    )


def fixed_bytes(dtype: pa.DataType) -> int:
    """The minimum number of bytes of a value in an array; for strings and nested values, the bytes of an offset."""
    if pa.types.is_dictionary(dtype):
        return 4
    try:
        return max(1, int(dtype.bit_width) // 8)
    except ValueError:
        return 4
