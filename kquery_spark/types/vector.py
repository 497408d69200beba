"""A column of values with its Spark type, in whichever physical form is cheapest.

The physical form may differ from the type in two ways, and every kernel relies on there being no other:

* ``decimal(p, s)`` is either decimal128 of scale ``s`` or **narrow**: int64 holding the unscaled value;
* ``string`` is either string or a dictionary with int32 indices and string values.

Files and Spark keep year-month intervals as int32; ``from_arrow`` and ``to_spark`` convert them.

A literal is one scalar and a length, never a filled array.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.types import names as t
from kquery_spark.types.sizes import check_elements, check_string_bytes, reserve_gather, reserve_repeats

Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_MAX_COMPARED_CODES = 4  # comparing with each is cheaper than a lookup for every row
_LOWEST = np.int64(-(2**63))
Data = Any  # pa.Array or pa.Scalar; pyarrow ships no types


@dataclass(frozen=True, slots=True)
class Vector:
    """Values (``data``: pa.Array, or pa.Scalar for a literal) of Spark type ``dtype``."""

    dtype: pa.DataType
    data: Data

    @property
    def is_scalar(self) -> bool:
        """Whether this is one value standing for every row."""
        return isinstance(self.data, pa.Scalar)

    @property
    def is_narrow(self) -> bool:
        """Whether this is a decimal held as unscaled int64."""
        return bool(pa.types.is_decimal(self.dtype) and pa.types.is_int64(self.data.type))

    @property
    def is_dictionary(self) -> bool:
        """Whether this is a string column held as a dictionary."""
        return bool(pa.types.is_dictionary(self.data.type))

    @property
    def null_count(self) -> int:
        """Number of NULLs (0 or 1 for a scalar)."""
        if self.is_scalar:
            return 0 if self.data.is_valid else 1
        return int(self.data.null_count)

    def plain(self) -> Data:
        """The data in the type's own Arrow form: narrow decimals widened, dictionaries decoded."""
        if self.is_narrow:
            return widen(self.data, self.dtype)
        if self.is_dictionary:
            return decode(self.data)
        if pa.types.is_decimal(self.dtype) and self.data.type != self.dtype:
            return self.data.cast(self.dtype)
        return self.data

    def array(self, length: int) -> pa.Array:
        """The plain data as an array of ``length`` rows."""
        data = self.plain()
        return fill(data, length) if isinstance(data, pa.Scalar) else data

    def physical(self, length: int) -> pa.Array:
        """The data as an array of ``length`` rows, in the form it has."""
        return fill(self.data, length) if self.is_scalar else self.data

    def filled(self, length: int) -> Vector:
        """The vector with its data as an array of ``length`` rows; a scalar is repeated."""
        return Vector(self.dtype, self.physical(length))


def fill(scalar: pa.Scalar, length: int) -> pa.Array:
    """Return an array that repeats one value, for operators that need an array. Raises BatchTooLarge for more than 2 GiB."""
    if pa.types.is_dictionary(scalar.type):
        scalar = scalar.as_py() if scalar.is_valid else None
        return pa.array([scalar], t.STRING).dictionary_encode().take(pa.array(np.zeros(length, np.int32)))
    if not scalar.is_valid or not length:  # pa.repeat takes no list or map zero times
        return pa.nulls(length, scalar.type)
    reserve_repeats([scalar], length)
    _check_repeats(scalar, length)
    return pa.repeat(scalar, length)


def _check_repeats(scalar: pa.Scalar, length: int) -> None:
    """Raise BatchTooLarge if the offsets of a repeated value exceed 32 bits, which ``pa.repeat`` does not check.

    ``pa.repeat`` does check the offsets of strings within lists and maps.
    """
    if not scalar.is_valid:
        return
    if scalar.type in (t.STRING, t.BINARY):
        check_string_bytes(length * scalar.as_buffer().size, "copies of a constant string")
    elif isinstance(scalar, pa.ListScalar):
        check_elements(length * len(scalar.values))
    elif isinstance(scalar, pa.StructScalar):
        for i in range(scalar.type.num_fields):
            _check_repeats(scalar[i], length)


def decode(data: Data) -> Data:
    """A dictionary column (or scalar) as plain strings."""
    if isinstance(data, pa.Scalar):
        return pa.scalar(data.as_py(), t.STRING)
    reserve_gather([data.dictionary], data.indices)
    return data.dictionary.take(data.indices)


def gather(values: pa.Array, indices: pa.Array) -> pa.Array:
    """Map the result for a dictionary's values to its rows: ``values.take(indices)``, with less work for Booleans."""
    if not pa.types.is_boolean(values.type) or values.null_count or len(indices) < len(values):
        reserve_gather([values], indices)
        return values.take(indices)
    flags = values.to_numpy(zero_copy_only=False)
    rare = bool(2 * np.count_nonzero(flags) <= len(flags))
    codes = np.flatnonzero(flags if rare else ~flags)
    if len(codes) > _MAX_COMPARED_CODES:
        return values.cast(pa.uint8()).take(indices).cast(pa.bool_())
    matches = [
        pc.equal(indices, pa.scalar(int(code), indices.type)) for code in (codes if len(codes) else [-1])
    ]
    hits = functools.reduce(pc.or_, matches)
    return hits if rare else pc.invert(hits)


def true_flags(mask: pa.Array) -> Flags:
    """Convert a Boolean array to numpy; NULL counts as False."""
    flags: Flags = (pc.fill_null(mask, False) if mask.null_count else mask).to_numpy(zero_copy_only=False)
    return flags


def validity(array: pa.Array) -> Flags | None:
    """True where a value is present, or None when nothing is NULL."""
    if array.null_count == 0:
        return None
    bitmap = array.buffers()[0]
    if bitmap is None or pa.types.is_dictionary(array.type) or pa.types.is_union(array.type):
        return np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), dtype=np.bool_)
    start, skipped = divmod(array.offset, 8)
    count = skipped + len(array)
    packed = np.frombuffer(bitmap, np.uint8, (count + 7) // 8, start)
    return np.unpackbits(packed, count=count, bitorder="little")[skipped:].view(np.bool_)


def slots(data: pa.Array) -> npt.NDArray[Any]:
    """The values of an array of numbers or times for numpy, without a copy; NULL slots hold whatever they hold."""
    width = data.type.bit_width // 8
    kind = np.dtype(f"{'f' if pa.types.is_floating(data.type) else 'i'}{width}")
    if len(data) == 0:
        return np.empty(0, kind)
    return np.frombuffer(data.buffers()[1], kind, len(data), width * data.offset)


def decimal_words(data: pa.Array) -> Int64s:
    """decimal128 values as rows of their low and their high 64 bits, without a copy; NULL slots hold anything."""
    if len(data) == 0:
        return np.empty((0, 2), np.int64)
    return np.frombuffer(data.buffers()[1], np.int64, 2 * len(data), 16 * data.offset).reshape(-1, 2)


def widen(data: Data, dtype: pa.DataType) -> Data:
    """Narrow int64 unscaled values as decimal128 of ``dtype``; the caller vouches that they fit."""
    if isinstance(data, pa.Scalar):
        return widen(pa.array([data.as_py()], pa.int64()), dtype)[0]
    bitmap, skipped = own_bitmap(data)
    values = slots(data)
    words = np.empty((skipped + len(data), 2), np.int64)
    words[skipped:, 0] = values
    np.right_shift(values, 63, out=words[skipped:, 1])
    return pa.Array.from_buffers(dtype, len(data), [bitmap, pa.py_buffer(words)], data.null_count, skipped)


def own_bitmap(data: pa.Array) -> tuple[pa.Buffer | None, int]:
    """Return the validity of a slice's values, and the number of bits in it that belong to rows before the slice."""
    if not data.null_count:
        return None, 0
    start, skipped = divmod(data.offset, 8)
    return data.buffers()[0].slice(start), skipped


def narrow(data: Data) -> Data | None:
    """decimal128 values as unscaled int64, or None when a value does not fit."""
    if isinstance(data, pa.Scalar):
        if not data.is_valid:
            return pa.scalar(None, pa.int64())
        array = narrow(pa.array([data.as_py()], data.type))
        return None if array is None else array[0]
    if len(data) == 0:
        return pa.array([], pa.int64())
    words = decimal_words(data)
    bitmap, skipped = own_bitmap(data)
    digits = np.empty(skipped + len(data), np.int64)
    low = digits[skipped:]
    low[:] = words[:, 0]
    if data.type.precision > 18:
        fits = words[:, 1] == (low >> 63)
        fits &= low != _LOWEST  # it has no absolute value in int64
        if not fits.all():
            valid = validity(data)
            if valid is None or not fits[valid].all():
                return None
    return pa.Array.from_buffers(
        pa.int64(), len(data), [bitmap, pa.py_buffer(digits)], data.null_count, skipped
    )


def interval_storage(intervals: pa.Array) -> pa.Array:
    """Intervals as the integers in which Spark keeps them."""
    return intervals.view(t.LONG).cast(t.INTERVAL_STORAGE[intervals.type])


def to_spark(data: pa.Array) -> pa.Array:
    """A column in the form in which Spark takes it: year-month intervals as int32, everything else unchanged."""
    return interval_storage(data) if data.type == t.YEAR_MONTH else data


def from_arrow(dtype: pa.DataType, data: Data) -> Vector:
    """Convert a column of a file or of a user to the engine's physical forms (views and large types become plain)."""
    kind = data.type
    if pa.types.is_decimal(dtype):
        if not pa.types.is_decimal128(kind) or kind.scale != dtype.scale:
            data = data.cast(dtype)
        slim = narrow(data)
        return Vector(dtype, data if slim is None else slim)
    if kind == dtype:
        return Vector(dtype, data)
    if dtype == t.YEAR_MONTH:
        return Vector(dtype, data.cast(t.LONG).view(dtype))
    if pa.types.is_dictionary(kind):
        # The engine expects NULL among the indices only.
        if (
            dtype == t.STRING
            and kind == pa.dictionary(pa.int32(), t.STRING)
            and not data.dictionary.null_count
        ):
            return Vector(dtype, data)
        reserve_gather([data.dictionary], data.indices)
        data = data.dictionary.take(data.indices)
        if data.type == dtype:
            return Vector(dtype, data)
    return Vector(dtype, data.cast(dtype))
