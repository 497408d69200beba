"""Reads INT96 times as Spark does.

An INT96 time has 8 bytes of nanoseconds and 4 bytes of a Julian day number. Both are signed, but Arrow reads both as
unsigned numbers, and takes day 0 for 1970-01-01. Parquet's Java library, which Spark uses, never writes negative
nanoseconds. For its files, a second read in seconds detects the days that Arrow misreads, except for day 0. Some other
writers store times before 1970 with negative nanoseconds. From their files, pyarrow reads the 12 bytes as they are, and
``int96_times`` converts them, which takes several times as long.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kquery_spark.kernels.parquet_page_table import JULIAN_DAY_OF_EPOCH
from kquery_spark.types.units import DAY_MICROS
from kquery_spark.types.vector import own_bitmap, validity

_PARTS = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_MAX_SECONDS = (2**63 - 1) // 1_000_000  # the largest time that fits into 64-bit microseconds
_MAX_DAYS = 106_751_992  # from 1970-01-01 to the ends of 64-bit microseconds, rounded up


def int96_times(data: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    """Convert a column of 12 bytes. Raises ValueError for days beyond 64-bit microseconds."""
    return pa.chunked_array([_times(chunk, column) for chunk in data.chunks], pa.timestamp("us"))


def _times(data: pa.Array, column: str) -> pa.Array:
    if not len(data):
        return pa.array([], pa.timestamp("us"))
    parts = np.frombuffer(data.buffers()[1], _PARTS, len(data), _PARTS.itemsize * data.offset)
    nanos, days = parts["nanos"], parts["day"].astype(np.int64) - JULIAN_DAY_OF_EPOCH
    valid = validity(data)
    if valid is not None:
        nanos, days = np.where(valid, nanos, 0), np.where(valid, days, 0)
    if np.abs(days).max() > _MAX_DAYS:
        raise ValueError(f"column {column} has INT96 times that 64-bit microseconds cannot represent")
    micros = nanos // 1000
    micros += (nanos < 0) & (nanos % 1000 != 0)  # as in Java, quotients are rounded toward zero
    bitmap, skipped = own_bitmap(data)
    times = np.empty(skipped + len(data), np.int64)
    times[skipped:] = days * DAY_MICROS + micros
    return pa.Array.from_buffers(
        pa.timestamp("us"), len(data), [bitmap, pa.py_buffer(times)], data.null_count, skipped
    )


def check_int96(in_seconds: pq.ParquetFile, group: int, column: str) -> None:
    """Raise ValueError for INT96 times with a negative day number, which Arrow reads as an unsigned one.

    In microseconds these times overflow and look like any other. In seconds they do not overflow and are far outside
    the range of 64-bit microseconds, so the column is read a second time in seconds.
    """
    seconds = in_seconds.read_row_group(group, columns=[column], use_threads=False).column(0)
    last = pc.max(seconds.cast(pa.int64())).as_py()
    if last is not None and last > _MAX_SECONDS:
        raise ValueError(
            f"column {column} has INT96 times before 4713 BC or past the year 285,000, which pyarrow misreads"
        )
