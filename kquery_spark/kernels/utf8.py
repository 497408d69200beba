"""Which strings are valid UTF-8, and what Spark makes of those that are not.

Files of Hive and other writers contain strings in Latin-1 and other encodings, and neither Spark nor Arrow checks what
it reads. Spark then treats such a string in one of three ways: as plain bytes (comparisons, hashes, ``concat``), as
characters whose lengths the first byte of each decides (``length``, ``substring``), or as a Java string in which each
malformed sequence is U+FFFD (``upper``, regular expressions).
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.kernels.text import layout
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data

Bools = npt.NDArray[np.bool_]
_JAVA_ERRORS = "kquery_spark.java"


def has_strings(dtype: pa.DataType) -> bool:
    """Whether values of the type contain strings."""
    if pa.types.is_nested(dtype):
        return any(has_strings(dtype.field(i).type) for i in range(dtype.num_fields))
    return bool(pa.types.is_string(dtype) or pa.types.is_dictionary(dtype))


def is_valid(data: Data) -> bool:
    """Whether all strings in an array or a scalar are valid UTF-8.

    One pass over the bytes settles arrays of ASCII (about 1 ns for a value of 30 bytes); others take a second pass.
    """
    if not has_strings(data.type):
        return True
    if isinstance(data, pa.Scalar):
        return not data.is_valid or is_valid(_array_of(data))
    if pa.types.is_dictionary(data.type):
        return is_valid(data.dictionary)
    if pa.types.is_nested(data.type):
        return all(map(is_valid, _leaves(data)))
    if _is_ascii(data):
        return True
    try:
        data.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def invalid_rows(strings: pa.Array) -> Bools:
    """True for rows of a plain string array that are not valid UTF-8."""
    binary = strings.cast(t.BINARY)
    rows = np.zeros(len(strings), np.bool_)
    suspects = np.flatnonzero(~pc.fill_null(pc.string_is_ascii(strings), True).to_numpy(zero_copy_only=False))
    for row, value in zip(suspects, binary.take(pa.array(suspects)).to_pylist(), strict=True):
        rows[row] = not _decodes(value)
    return rows


def is_replaceable(data: Data) -> bool:
    """Whether ``replaced`` takes the array or scalar: no array or map contains an invalid string."""
    if not pa.types.is_nested(data.type) or is_valid(data):
        return True
    if isinstance(data, pa.Scalar):
        return is_replaceable(_array_of(data))
    return pa.types.is_struct(data.type) and all(map(is_replaceable, _leaves(data)))


def has_surrogates(data: Data) -> bool:
    """Whether an invalid string of an array (plain or dictionary) or a scalar may contain a surrogate (ED A0 to ED BF)."""
    if isinstance(data, pa.Scalar):
        return data.is_valid and has_surrogates(_array_of(data))
    strings = data.dictionary if pa.types.is_dictionary(data.type) else data
    _, raw = layout(strings.filter(pa.array(invalid_rows(strings))))
    return bool(((raw[:-1] == 0xED) & (raw[1:] >= 0xA0)).any())


def java_string(value: bytes) -> str:
    """Decode bytes as ``new String(bytes, UTF_8)`` does in Java, which is what ``UTF8String.toString`` calls.

    Both Java and Python replace each maximal prefix of a character by U+FFFD. They differ in the bytes of surrogates
    only: ED A0 80 is one U+FFFD in Java and three in Python.
    """
    return value.decode("utf-8", _JAVA_ERRORS)


def replaced(data: Data) -> Data:
    """An array or a scalar with its strings as Java decodes them; valid strings stay as they are.

    The strings may be plain, a dictionary or fields of structs, but not in arrays and maps (``is_replaceable``).
    """
    if is_valid(data):
        return data
    if isinstance(data, pa.Scalar):
        return replaced(_array_of(data))[0]
    if pa.types.is_struct(data.type):
        mask = data.is_null() if data.null_count else None
        return pa.StructArray.from_arrays(
            list(map(replaced, _leaves(data))), fields=list(data.type), mask=mask
        )
    if pa.types.is_dictionary(data.type):
        return pa.DictionaryArray.from_arrays(data.indices, replaced(data.dictionary))
    rows = pa.array(invalid_rows(data))
    values = data.cast(t.BINARY).filter(rows).to_pylist()
    return pc.replace_with_mask(data, rows, pa.array(list(map(java_string, values)), t.STRING))


def printable(table: pa.Table) -> pa.Table:
    """The table with malformed strings replaced as in Spark's ``collect``, so that Python can decode them."""
    for i, column in enumerate(table.columns):
        if not all(map(is_valid, column.chunks)) and all(map(is_replaceable, column.chunks)):
            table = table.set_column(i, table.field(i), pa.chunked_array(list(map(replaced, column.chunks))))
    return table


def strings_of(values: Sequence[bytes | None]) -> pa.Array:
    """A string array of these bytes, which need not be valid UTF-8."""
    return pa.array(values, t.BINARY).cast(t.STRING, safe=False)


def _is_ascii(strings: pa.Array) -> bool:
    count, data = len(strings), strings.buffers()[2]
    if not count or data is None:
        return True
    bounds = np.frombuffer(strings.buffers()[1], np.int32, count + 1, 4 * strings.offset)
    part = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    return len(part) == 0 or int(part.max()) < 128


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _array_of(scalar: pa.Scalar) -> pa.Array:
    """A scalar as an array of one row; Arrow's own functions for this decode strings."""
    if pa.types.is_dictionary(scalar.type):
        scalar = scalar.value
    return pa.repeat(scalar, 1)


def _leaves(data: pa.Array) -> Sequence[pa.Array]:
    """The children of a nested array, without rows that a slice leaves out."""
    if pa.types.is_struct(data.type):
        return [data.field(i) for i in range(data.type.num_fields)]
    if pa.types.is_map(data.type):
        start, end = data.offsets[0].as_py(), data.offsets[-1].as_py()
        return [data.keys.slice(start, end - start), data.items.slice(start, end - start)]
    return [data.flatten()]


def _java_errors(error: UnicodeError) -> tuple[str, int]:
    """Replace a malformed sequence by U+FFFD; a surrogate's bytes, also the first two of them, are one such sequence."""
    assert isinstance(error, UnicodeDecodeError)
    rest = error.object[error.start : error.start + 3]
    if rest[0] == 0xED and len(rest) > 1 and 0xA0 <= rest[1] <= 0xBF:
        return "\ufffd", error.start + 2 + (len(rest) == 3 and rest[2] & 0xC0 == 0x80)
    return "\ufffd", error.end


codecs.register_error(_JAVA_ERRORS, _java_errors)
