"""Parses the parts of a Parquet footer that pyarrow hides, and rewrites footers so that pyarrow returns stored values.

Arrow converts a decimal that is stored as INT32 or INT64 into 128-bit values, and the engine would convert these back into
int64. If the footer lacks the decimal annotation, pyarrow returns the stored integers, so this annotation is removed. On
request, INT96 times are declared as values of 12 bytes, because Arrow misreads some of them (``int96.py``). All other bytes
of the footer stay the same. Format: parquet.thrift of apache/parquet-format, in Thrift's compact protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.kernels.parquet_page_table import INT96_BYTES
from kquery_spark.sources.parquet.thrift_compact import I32, Cursor, Field, integer, struct
from kquery_spark.sources.prefetch.byte_ranges import ByteReader

MAGIC = b"PAR1"
PHYSICAL_TYPES = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
TAIL_BYTES = 8  # footer length and magic
_END_BYTES = 64 << 10
_SCHEMA = 2  # of FileMetaData
_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN, _CONVERTED_TYPE = 1, 2, 3, 4, 5, 6  # of SchemaElement
_ANNOTATION = (_CONVERTED_TYPE, 7, 8, 10)  # field ids of converted type, scale, precision, logical type
_REPEATED = 2  # FieldRepetitionType.REPEATED
_INTEGERS, _INT96, _FIXED_LENGTH = (1, 2), 3, 7  # Type.INT32 and Type.INT64, INT96, FIXED_LEN_BYTE_ARRAY
_DECIMAL = 5  # ConvertedType.DECIMAL


class SizedReader(ByteReader, Protocol):
    """An open file with a known size."""

    def size(self) -> int:
        """The size of the file in bytes."""
        ...


def read_footer(file: SizedReader) -> bytes | None:
    """The serialized FileMetaData; None for an encrypted footer or another format, for which pyarrow raises the error."""
    size = file.size()
    if size < TAIL_BYTES:
        return None
    # most footers fit into this first read
    end = bytes(file.read_at(min(_END_BYTES, size), max(size - _END_BYTES, 0)))
    length = int.from_bytes(end[-TAIL_BYTES:-4], "little")
    if end[-4:] != MAGIC or length > size - TAIL_BYTES:
        return None
    if length > len(end) - TAIL_BYTES:
        return bytes(file.read_at(length, size - TAIL_BYTES - length))
    return end[len(end) - TAIL_BYTES - length : len(end) - TAIL_BYTES]


def as_file(footer: bytes) -> bytes:
    """The end of a Parquet file with this footer."""
    return b"".join((footer, len(footer).to_bytes(4, "little"), MAGIC))


def storage_metadata(footer: bytes, *, int96: bool) -> Any | None:
    """Return the metadata in which decimals that are stored as INT32 or INT64 are declared as integers.

    Only flat columns change; None if there is nothing to change. int96: whether INT96 times are also declared as values of
    12 bytes. Raises ValueError for a footer that does not follow the format.
    """
    rewritten = with_storage_types(footer, int96=int96)
    return None if rewritten is None else pq.read_metadata(pa.BufferReader(MAGIC + as_file(rewritten)))


def with_storage_types(footer: bytes, *, int96: bool) -> bytes | None:
    """The serialized FileMetaData with the declarations of ``storage_metadata``; None if none differs."""
    cursor = _at_schema(footer)
    count = cursor.list_size()
    start = cursor.at
    elements = _elements(cursor, count, int96)
    if not any(e.changed for e in elements):
        return None
    return b"".join((footer[:start], *(e.data for e in elements), footer[cursor.at :]))


def flat_elements(footer: bytes, *, int96: bool) -> dict[str, bytes]:
    """The serialized SchemaElement of each flat column by name, as ``storage_metadata`` declares it."""
    cursor = _at_schema(footer)
    return {e.name: e.data for e in _elements(cursor, cursor.list_size(), int96) if e.is_flat}


def _at_schema(footer: bytes) -> Cursor:
    cursor = Cursor(footer)
    for field, kind, _ in cursor.fields():
        if field == _SCHEMA:
            return cursor
        cursor.skip(kind)
    raise ValueError("the footer has no schema")


@dataclass(frozen=True)
class _Element:
    """A node of the schema tree. data: its bytes after the rewrite. changed: True if they differ from the file's."""

    name: str
    data: bytes
    is_flat: bool
    changed: bool


def _elements(cursor: Cursor, count: int, int96: bool) -> list[_Element]:
    """Parse the elements of the schema, which are stored in depth-first order of the schema tree.

    For the schema ``root(a, b(c))`` the list is root (2 children), a, b (1 child), c. ``open_groups`` is a stack with the
    number of missing children of each open group; an element is a column of the table if only the root is open.
    """
    elements = []
    open_groups: list[int] = []
    for _ in range(count):
        start = cursor.at
        values, name, fields = _element(cursor)
        children = values.get(_CHILDREN, 0)
        is_flat = len(open_groups) == 1 and values.get(_REPETITION) != _REPEATED and not children
        rewritten = _in_storage_type(values, fields, int96) if is_flat else None
        data = cursor.data[start : cursor.at] if rewritten is None else rewritten
        elements.append(_Element(name, data, is_flat, rewritten is not None))
        if open_groups:
            open_groups[-1] -= 1
        open_groups.append(children)
        while open_groups and open_groups[-1] == 0:
            open_groups.pop()
    return elements


def _in_storage_type(values: dict[int, int], fields: list[Field], int96: bool) -> bytes | None:
    """The serialized element with its storage type instead of the declared type; None if the two are the same."""
    unannotated = [f for f in fields if f[0] not in _ANNOTATION]
    if int96 and values.get(_TYPE) == _INT96:
        fixed = [(_TYPE, I32, integer(_FIXED_LENGTH)), (_LENGTH, I32, integer(INT96_BYTES))]
        return struct([*fixed, *(f for f in unannotated if f[0] > _LENGTH)])
    is_decimal = values.get(_CONVERTED_TYPE) == _DECIMAL and values.get(_TYPE) in _INTEGERS
    return struct(unannotated) if is_decimal else None


def _element(cursor: Cursor) -> tuple[dict[int, int], str, list[Field]]:
    """Parse a SchemaElement: the integers that are needed here, by field id; its name; and the bytes of every field."""
    values = {}
    name = ""
    fields = []
    for field, kind, first in cursor.fields():
        if field in (_TYPE, _REPETITION, _CHILDREN, _CONVERTED_TYPE):
            values[field] = cursor.zigzag()
        elif field == _NAME:
            name = cursor.binary().decode(errors="replace")  # the root may have any name
        else:
            cursor.skip(kind)
        fields.append((field, kind, cursor.data[first : cursor.at]))
    return values, name, fields
