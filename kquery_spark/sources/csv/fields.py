"""Splits lines into columns with compiled kernels, if all lines have the same number of values.

Values are either quoted as a whole or not quoted at all; other lines are handled by ``blocks``.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.kernels.text import if_else
from kquery_spark.sources.csv.options import CsvOptions
from kquery_spark.types import names as t

_MAX_OFFSET = (1 << 31) - 1  # offsets have 32 bits
_MAX_POOLED_BYTES = 32 << 20
_ASCII = 128


class _Scratch(threading.local):
    """Buffers of a thread that are reused for each block, because allocating new pages takes a quarter of the time."""

    def __init__(self) -> None:
        self._ends = np.empty(0, np.int32)
        self._data = np.empty(0, np.uint8)

    def buffers(self, size: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """Return buffers of at least ``size`` offsets and bytes. Very large buffers are not cached."""
        if size > _MAX_POOLED_BYTES:
            return np.empty(size, np.int32), np.empty(size, np.uint8)
        if len(self._ends) < size:
            self._ends, self._data = np.empty(size, np.int32), np.empty(size, np.uint8)
        return self._ends, self._data


_scratch = _Scratch()


def cut(
    block: bytes,
    options: CsvOptions,
    width: int,
    column_indexes: Collection[int],
    quoted: bool,
    pruned: bool,
    kernels: ModuleType,
) -> list[pa.Array] | None:
    """Return the strings of some columns, with NULL where Spark has NULL; None if the lines need another reader.

    block: lines without blank lines and comments; the options must not trim. width: the number of values of each line.
    quoted: whether the block has any quote. pruned: whether the table has columns that are not read.
    """
    raw = np.frombuffer(block, np.uint8)
    if len(raw) > _MAX_OFFSET or (quoted and options.has_escapes(block)):
        return None
    quote = ord(options.quote) if quoted else -1
    empty = not options.distinguishes_empty_values(pruned)
    ends, data = _scratch.buffers(len(raw) + kernels.SLACK)
    lines = kernels.separators(raw, ord(options.delimiter), quote, empty, width, ends)
    if lines < 0:
        return None
    arrays = []
    for column in column_indexes:
        if column >= width:
            arrays.append(pa.nulls(lines, t.STRING))
            continue
        offsets = np.empty(lines + 1, np.int32)
        size = kernels.field_strings(raw, ends, quote, width, lines, column, offsets, data)
        array = _strings(offsets, data[:size].copy(), options)
        if array is None:
            return None
        arrays.append(array)
    return arrays


def _strings(
    offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], options: CsvOptions
) -> pa.Array | None:
    """Build an array of strings, with NULL for ``options.null_strings``; None if a string is not valid UTF-8."""
    buffers = pa.py_buffer(offsets), pa.py_buffer(data)
    present = offsets[1:] > offsets[:-1]
    bitmap = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    array = pa.Array.from_buffers(t.STRING, len(present), [bitmap, *buffers])
    if len(data) and data.max() >= _ASCII:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            return None
    for marker in options.null_strings[1:]:  # the first one is the empty string, which is NULL already
        array = if_else(pc.equal(array, marker), pa.scalar(None, t.STRING), array)
    return array
