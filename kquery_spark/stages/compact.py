"""Compacts columns for a shuffle: writes each column with the narrowest integers that hold its values.

A shuffled byte is copied about eight times, mostly in the JVM, which takes 4 ns and more on two cores. Finding the narrowest
integers takes 2 ns per value. These columns become smaller:

* Integers, dates, times and narrow decimals are written as offsets from the smallest value: 1000, 1003, 1001 becomes the
  base 1000 and the uint8 values 0, 3, 1. A constant column is only its base.
* Decimals of 128 bits whose values fit into 64 bits are written as these integers.
* Strings are written as the lengths of the values (uint8 or uint16), with the bytes of all values in a separate buffer.
* Dictionary indices are written as uint8 or uint16.
* Columns of NULLs have no data.

``restore`` returns the same values with the same Arrow type.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.types import names as t
from kquery_spark.types.vector import narrow, own_bitmap, slots, widen

_MIN_COMPACTED_ROWS = 1024  # for fewer rows, compacting a column takes longer than it saves
_UNSIGNED = (np.uint8, np.uint16, np.uint32)


@dataclass(frozen=True)
class Compact:
    """A compacted column.

    data: one value per row; of type null if ``encoding`` has all the information. encoding: how to restore the column, as
    metadata of its Arrow field; empty if the column is unchanged. text: for strings, the concatenated bytes of all values.
    """

    data: pa.Array
    encoding: dict[bytes, bytes]
    text: pa.Buffer | None = None


def compact(data: pa.Array) -> Compact:
    """Return a column in its narrowest form, or unchanged if it is already the narrowest."""
    kind, count = data.type, len(data)
    if count < _MIN_COMPACTED_ROWS:
        return Compact(data, {})
    if data.null_count == count:
        return Compact(pa.nulls(count), {b"form": b"null"})
    if pa.types.is_dictionary(kind):
        return _compact_dictionary(data)
    if kind in (t.STRING, t.BINARY):
        return _compact_strings(data)
    if pa.types.is_decimal128(kind):
        digits = narrow(data)
        packed = None if digits is None else _compact_integers(digits)
        return Compact(data, {}) if packed is None else Compact(packed.data, packed.encoding | {b"wide": b""})
    if _has_integer_values(kind):
        return _compact_integers(data) or Compact(data, {})
    return Compact(data, {})


def restore(
    dtype: pa.DataType, data: pa.Array, encoding: dict[bytes, bytes], text: pa.Buffer | None
) -> pa.Array:
    """Return the column that ``compact`` compacted. dtype: its Spark type; the other arguments are the fields of Compact."""
    kind = encoding.get(b"form")
    if kind is None:
        return data
    if kind == b"null":
        return pa.nulls(len(data), dtype)
    if kind == b"dictionary":
        return pa.DictionaryArray.from_arrays(data.indices.cast(pa.int32(), safe=False), data.dictionary)
    if kind == b"text":
        assert text is not None
        return _restore_strings(dtype, data, text)
    # The remaining forms are integers: the base plus the offsets. Slots of NULLs can wrap around, which does no harm.
    plain = pa.int64() if pa.types.is_decimal(dtype) else dtype
    values = np.empty(len(data), f"i{plain.bit_width // 8}")
    base, bitmap = values.dtype.type(int(encoding[b"base"])), None
    if kind == b"constant":
        values[:] = base
    else:
        bitmap, _ = own_bitmap(data)
        np.add(_unsigned(data), base, out=values, dtype=values.dtype, casting="unsafe")
    nulls = data.null_count if bitmap is not None else 0
    whole = pa.Array.from_buffers(plain, len(data), [bitmap, pa.py_buffer(values)], nulls)
    return widen(whole, dtype) if b"wide" in encoding else whole


def _has_integer_values(kind: pa.DataType) -> bool:
    return kind in (t.SHORT, t.INT, t.LONG, t.DATE) or t.has_long_counts(kind)


def _unsigned(data: pa.Array) -> npt.NDArray[np.unsignedinteger]:
    kind = np.dtype(f"u{data.type.bit_width // 8}")
    return np.frombuffer(data.buffers()[1], kind, len(data), kind.itemsize * data.offset)


def _narrowest_type(maximum: int) -> type[np.unsignedinteger] | None:
    """Return the narrowest unsigned type for values from 0 to ``maximum``; None if 32 bits are not enough."""
    return next((kind for kind in _UNSIGNED if maximum <= np.iinfo(kind).max), None)


def _compact_integers(data: pa.Array) -> Compact | None:
    values = slots(data)
    if data.null_count:
        min_max = pc.min_max(data.view(f"int{data.type.bit_width}"))
        low, high = min_max["min"].as_py(), min_max["max"].as_py()
    else:
        low, high = int(values.min()), int(values.max())
    encoding = {b"form": b"integers", b"base": str(low).encode()}
    if low == high and not data.null_count:
        return Compact(pa.nulls(len(data)), encoding | {b"form": b"constant"})
    # ``high - low`` is a Python integer, so it cannot overflow: a bigint column with both extremes stays unchanged.
    kind = _narrowest_type(high - low)
    if kind is None or np.dtype(kind).itemsize >= values.itemsize:
        return None
    # The validity bitmap of a slice can start in the middle of a byte. The bitmap is not copied, so the array gets the same
    # offset (``skipped``), and the values begin after as many unused slots.
    bitmap, skipped = own_bitmap(data)
    distances = np.empty(skipped + len(data), kind)
    np.subtract(values, values.dtype.type(low), out=distances[skipped:], dtype=values.dtype, casting="unsafe")
    return Compact(_array(distances, bitmap, skipped, data), encoding)


def _compact_strings(data: pa.Array) -> Compact:
    """Write strings as narrow lengths and one buffer with all bytes. The buffer is a slice, so nothing is copied."""
    offsets = np.frombuffer(data.buffers()[1], np.int32, len(data) + 1, 4 * data.offset)
    lengths = np.diff(offsets)
    kind = _narrowest_type(int(lengths.max()))
    if kind not in (np.uint8, np.uint16):
        return Compact(data, {})
    bitmap, skipped = own_bitmap(data)
    narrow_lengths = np.empty(skipped + len(data), kind)
    narrow_lengths[skipped:] = lengths
    start, end = int(offsets[0]), int(offsets[-1])
    text = pa.py_buffer(b"") if end == start else data.buffers()[2].slice(start, end - start)
    return Compact(_array(narrow_lengths, bitmap, skipped, data), {b"form": b"text"}, text)


def _restore_strings(dtype: pa.DataType, data: pa.Array, text: pa.Buffer) -> pa.Array:
    offsets = np.empty(len(data) + 1, np.int32)
    offsets[0] = 0
    np.cumsum(_unsigned(data), out=offsets[1:], dtype=np.int32)
    bitmap, _ = own_bitmap(data)
    return pa.Array.from_buffers(dtype, len(data), [bitmap, pa.py_buffer(offsets), text], data.null_count)


def _array(values: np.ndarray, bitmap: pa.Buffer | None, skipped: int, like: pa.Array) -> pa.Array:
    """Return an array of the values with the NULLs of ``like``. skipped: the number of leading values to ignore."""
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(like), [bitmap, pa.py_buffer(values)], like.null_count, skipped)


def _compact_dictionary(data: pa.Array) -> Compact:
    kind = _narrowest_type(len(data.dictionary))
    if kind not in (np.uint8, np.uint16):
        return Compact(data, {})
    indices = data.indices.cast(pa.from_numpy_dtype(kind), safe=False)
    return Compact(pa.DictionaryArray.from_arrays(indices, data.dictionary), {b"form": b"dictionary"})
