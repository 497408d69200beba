"""Converts INT96 times, which pyarrow reads as 12 bytes, to microseconds as Spark does.

An INT96 time has 8 bytes of nanoseconds and 4 bytes of a Julian day number. Both are signed: some writers store times before
1970 with negative nanoseconds. Arrow reads both as unsigned numbers, and day 0 as 1970-01-01.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kquery_spark.types.vector import own_bitmap, validity

STORAGE = pa.binary(12)
_PARTS = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_EPOCH_DAY = 2_440_588  # the Julian day number of 1970-01-01
_MICROS_PER_DAY = 86_400_000_000
_MAX_DAYS = 106_751_992  # from 1970-01-01 to the ends of 64-bit microseconds, rounded up


def int96_times(data: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    """Convert a column of type ``STORAGE``. Raises ValueError for times that exceed 64-bit microseconds."""
    return pa.chunked_array([_times(chunk, column) for chunk in data.chunks], pa.timestamp("us"))


def _times(data: pa.Array, column: str) -> pa.Array:
    if not len(data):
        return pa.array([], pa.timestamp("us"))
    parts = np.frombuffer(data.buffers()[1], _PARTS, len(data), _PARTS.itemsize * data.offset)
    nanos, days = parts["nanos"], parts["day"].astype(np.int64) - _EPOCH_DAY
    valid = validity(data)
    if valid is not None:
        nanos, days = np.where(valid, nanos, 0), np.where(valid, days, 0)
    if np.abs(days).max() > _MAX_DAYS:
        raise ValueError(f"column {column} has INT96 times that 64-bit microseconds cannot represent")
    micros = nanos // 1000
    micros += (nanos < 0) & (nanos % 1000 != 0)  # as in Java, quotients are rounded toward zero
    bitmap, skipped = own_bitmap(data)
    times = np.empty(skipped + len(data), np.int64)
    times[skipped:] = days * _MICROS_PER_DAY + micros
    return pa.Array.from_buffers(
        pa.timestamp("us"), len(data), [bitmap, pa.py_buffer(times)], data.null_count, skipped
    )
