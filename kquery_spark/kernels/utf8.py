"""Detects strings that are not valid UTF-8, and decodes them as Java does.

Files of Hive and other writers contain strings in Latin-1 and other encodings, and neither Spark nor Arrow validates the
bytes that it reads. What Spark does with a malformed string depends on the function:

- comparisons, hashes and ``concat`` work on the bytes;
- ``length`` and ``substring`` work on characters, whose length is given by their first byte (``utf8_string.py``);
- ``upper`` and regular expressions work on a Java string, in which each malformed sequence is one U+FFFD
  (``replace_malformed``). For example, Latin-1 ``b"caf\\xe9"`` becomes ``"caf\\ufffd"``.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.kernels.text import is_ascii, layout
from kquery_spark.types import names as t
from kquery_spark.types.vector import Data

Bools = npt.NDArray[np.bool_]
_JAVA_ERRORS = "kquery_spark.java"


def has_strings(dtype: pa.DataType) -> bool:
    """Return True if values of the type are strings or contain strings."""
    if pa.types.is_nested(dtype):
        return any(has_strings(dtype.field(i).type) for i in range(dtype.num_fields))
    return bool(pa.types.is_string(dtype) or pa.types.is_dictionary(dtype))


def is_valid(data: Data) -> bool:
    """Return True if all strings in an array or a scalar are valid UTF-8.

    One pass over the bytes proves that an array is ASCII (about 1 ns for a value of 30 bytes); otherwise Arrow validates it.
    """
    if not has_strings(data.type):
        return True
    if isinstance(data, pa.Scalar):
        return not data.is_valid or is_valid(_as_array(data))
    if pa.types.is_dictionary(data.type):
        return is_valid(data.dictionary)
    if pa.types.is_nested(data.type):
        return all(map(is_valid, _children(data)))
    if is_ascii(data):
        return True
    try:
        data.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def invalid_rows(strings: pa.Array) -> Bools:
    """Return a mask that is True for the rows of a plain string array that are not valid UTF-8."""
    binary = strings.cast(t.BINARY)
    rows = np.zeros(len(strings), np.bool_)
    # ASCII is always valid, so Python decodes only the other rows.
    suspects = np.flatnonzero(~pc.fill_null(pc.string_is_ascii(strings), True).to_numpy(zero_copy_only=False))
    for row, value in zip(suspects, binary.take(pa.array(suspects)).to_pylist(), strict=True):
        rows[row] = not _is_valid_utf8(value)
    return rows


def is_replaceable(data: Data) -> bool:
    """Return True if ``replace_malformed`` accepts the data: no array and no map contains a malformed string."""
    if not pa.types.is_nested(data.type) or is_valid(data):
        return True
    if isinstance(data, pa.Scalar):
        return is_replaceable(_as_array(data))
    return pa.types.is_struct(data.type) and all(map(is_replaceable, _children(data)))


def has_surrogates(data: Data) -> bool:
    """Return True if a malformed string may contain an encoded surrogate (bytes ED A0 to ED BF).

    ``data`` is a scalar, or a plain or dictionary-encoded array.
    """
    if isinstance(data, pa.Scalar):
        return data.is_valid and has_surrogates(_as_array(data))
    strings = data.dictionary if pa.types.is_dictionary(data.type) else data
    _, raw = layout(strings.filter(pa.array(invalid_rows(strings))))
    return bool(((raw[:-1] == 0xED) & (raw[1:] >= 0xA0)).any())


def java_string(value: bytes) -> str:
    """Decode bytes as ``new String(bytes, UTF_8)`` does in Java, which is what ``UTF8String.toString`` calls.

    Both Java and Python replace each maximal prefix of a character by one U+FFFD. They differ only for encoded surrogates:
    ED A0 80 is one U+FFFD in Java and three in Python.
    """
    return value.decode("utf-8", _JAVA_ERRORS)


def replace_malformed(data: Data) -> Data:
    """Return an array or a scalar in which malformed strings are decoded as in Java; valid strings do not change.

    Strings may be plain, dictionary-encoded or fields of structs, but not elements of arrays or maps (``is_replaceable``).
    """
    if is_valid(data):
        return data
    if isinstance(data, pa.Scalar):
        return replace_malformed(_as_array(data))[0]
    if pa.types.is_struct(data.type):
        mask = data.is_null() if data.null_count else None
        return pa.StructArray.from_arrays(
            list(map(replace_malformed, _children(data))), fields=list(data.type), mask=mask
        )
    if pa.types.is_dictionary(data.type):
        return pa.DictionaryArray.from_arrays(data.indices, replace_malformed(data.dictionary))
    rows = pa.array(invalid_rows(data))
    values = data.cast(t.BINARY).filter(rows).to_pylist()
    return pc.replace_with_mask(data, rows, pa.array(list(map(java_string, values)), t.STRING))


def replace_malformed_columns(table: pa.Table) -> pa.Table:
    """Return the table with malformed strings replaced as in Spark's ``collect``, so that Python can decode them."""
    for i, column in enumerate(table.columns):
        if not all(map(is_valid, column.chunks)) and all(map(is_replaceable, column.chunks)):
            table = table.set_column(
                i, table.field(i), pa.chunked_array(list(map(replace_malformed, column.chunks)))
            )
    return table


def strings_from_bytes(values: Sequence[bytes | None]) -> pa.Array:
    """Build a string array from bytes that need not be valid UTF-8."""
    return pa.array(values, t.BINARY).cast(t.STRING, safe=False)


def _is_valid_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_array(scalar: pa.Scalar) -> pa.Array:
    """Convert a scalar to an array of one row without decoding it, as Arrow's own constructors would."""
    if pa.types.is_dictionary(scalar.type):
        scalar = scalar.value
    return pa.repeat(scalar, 1)


def _children(data: pa.Array) -> Sequence[pa.Array]:
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
