"""Columns in as few bytes as their values need, for the way through a shuffle.

A byte that crosses is copied some eight times, most of them in the JVM, which takes 4 ns and more of two cores; finding
the narrowest integers that hold a column takes 2 ns a value. Narrowed are:

* integers and what is integers underneath (dates, times, decimals): distances from the lowest value, as uint8, uint16
  or uint32, or nothing at all where every value is the same;
* decimals of 128 bits whose values fit 64: as these integers;
* the offsets of text: the length of each value as uint8 or uint16, and the text apart;
* the indices of dictionaries;
* columns of NULLs: nothing at all.

``restored`` gives the same values in the same physical form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.types import names as t
from kquery_spark.types.vector import narrow, own_bitmap, slots, widen

_MIN_COMPACTED_ROWS = 1024  # for fewer the work per column is more than what is saved
_UNSIGNED = (np.uint8, np.uint16, np.uint32)


@dataclass(frozen=True)
class Compact:
    """``data``: a value per row, or of type null when ``form`` says all. ``text``: the bytes of text, one after another."""

    data: pa.Array
    form: dict[bytes, bytes]
    text: pa.Buffer | None = None


def compact(data: pa.Array) -> Compact:
    """A column in its narrowest form; as it is where it has no narrower one."""
    kind, count = data.type, len(data)
    if count < _MIN_COMPACTED_ROWS:
        return Compact(data, {})
    if data.null_count == count:
        return Compact(pa.nulls(count), {b"form": b"null"})
    if pa.types.is_dictionary(kind):
        return _dictionary(data)
    if kind in (t.STRING, t.BINARY):
        return _text(data)
    if pa.types.is_decimal128(kind):
        digits = narrow(data)
        packed = None if digits is None else _integers(digits)
        return Compact(data, {}) if packed is None else Compact(packed.data, packed.form | {b"wide": b""})
    if _is_integers(kind):
        return _integers(data) or Compact(data, {})
    return Compact(data, {})


def restored(
    dtype: pa.DataType, data: pa.Array, form: dict[bytes, bytes], text: pa.Buffer | None
) -> pa.Array:
    """The column of Spark type ``dtype`` that ``compact`` was given."""
    kind = form.get(b"form")
    if kind is None:
        return data
    if kind == b"null":
        return pa.nulls(len(data), dtype)
    if kind == b"dictionary":
        return pa.DictionaryArray.from_arrays(data.indices.cast(pa.int32(), safe=False), data.dictionary)
    if kind == b"text":
        assert text is not None
        return _restored_text(dtype, data, text)
    plain = pa.int64() if pa.types.is_decimal(dtype) else dtype
    values = np.empty(len(data), f"i{plain.bit_width // 8}")
    base, bitmap = values.dtype.type(int(form[b"base"])), None
    if kind == b"constant":
        values[:] = base
    else:
        bitmap, _ = own_bitmap(data)
        np.add(_unsigned(data), base, out=values, dtype=values.dtype, casting="unsafe")
    nulls = data.null_count if bitmap is not None else 0
    whole = pa.Array.from_buffers(plain, len(data), [bitmap, pa.py_buffer(values)], nulls)
    return widen(whole, dtype) if b"wide" in form else whole


def _is_integers(kind: pa.DataType) -> bool:
    return kind in (t.SHORT, t.INT, t.LONG, t.DATE) or t.has_long_counts(kind)


def _unsigned(data: pa.Array) -> npt.NDArray[np.unsignedinteger]:
    kind = np.dtype(f"u{data.type.bit_width // 8}")
    return np.frombuffer(data.buffers()[1], kind, len(data), kind.itemsize * data.offset)


def _width(most: int) -> type[np.unsignedinteger] | None:
    """The narrowest unsigned integers that reach from 0 to this."""
    return next((kind for kind in _UNSIGNED if most <= np.iinfo(kind).max), None)


def _integers(data: pa.Array) -> Compact | None:
    values = slots(data)
    if data.null_count:
        ends = pc.min_max(data.view(f"int{data.type.bit_width}"))
        low, high = ends["min"].as_py(), ends["max"].as_py()
    else:
        low, high = int(values.min()), int(values.max())
    form = {b"form": b"integers", b"base": str(low).encode()}
    if low == high and not data.null_count:
        return Compact(pa.nulls(len(data)), form | {b"form": b"constant"})
    kind = _width(high - low)
    if kind is None or np.dtype(kind).itemsize >= values.itemsize:
        return None
    bitmap, skipped = own_bitmap(data)
    codes = np.empty(skipped + len(data), kind)
    np.subtract(values, values.dtype.type(low), out=codes[skipped:], dtype=values.dtype, casting="unsafe")
    return Compact(_array(codes, bitmap, skipped, data), form)


def _text(data: pa.Array) -> Compact:
    offsets = np.frombuffer(data.buffers()[1], np.int32, len(data) + 1, 4 * data.offset)
    lengths = np.diff(offsets)
    kind = _width(int(lengths.max()))
    if kind not in (np.uint8, np.uint16):
        return Compact(data, {})
    bitmap, skipped = own_bitmap(data)
    codes = np.empty(skipped + len(data), kind)
    codes[skipped:] = lengths
    start, end = int(offsets[0]), int(offsets[-1])
    text = pa.py_buffer(b"") if end == start else data.buffers()[2].slice(start, end - start)
    return Compact(_array(codes, bitmap, skipped, data), {b"form": b"text"}, text)


def _restored_text(dtype: pa.DataType, data: pa.Array, text: pa.Buffer) -> pa.Array:
    offsets = np.empty(len(data) + 1, np.int32)
    offsets[0] = 0
    np.cumsum(_unsigned(data), out=offsets[1:], dtype=np.int32)
    bitmap, _ = own_bitmap(data)
    return pa.Array.from_buffers(dtype, len(data), [bitmap, pa.py_buffer(offsets), text], data.null_count)


def _array(codes: np.ndarray, bitmap: pa.Buffer | None, skipped: int, like: pa.Array) -> pa.Array:
    kind = pa.from_numpy_dtype(codes.dtype)
    return pa.Array.from_buffers(kind, len(like), [bitmap, pa.py_buffer(codes)], like.null_count, skipped)


def _dictionary(data: pa.Array) -> Compact:
    kind = _width(len(data.dictionary))
    if kind not in (np.uint8, np.uint16):
        return Compact(data, {})
    indices = data.indices.cast(pa.from_numpy_dtype(kind), safe=False)
    return Compact(pa.DictionaryArray.from_arrays(indices, data.dictionary), {b"form": b"dictionary"})
