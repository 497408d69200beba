"""Parquet footers in which short decimals are the integers they are stored as.

Arrow turns a decimal of INT32 or INT64 storage into 128-bit values, which the engine would make int64 again. A reader given
a footer without the decimal annotation decodes the integers alone. Only the annotation is dropped, all else is kept byte for
byte. Layout: parquet.thrift of apache/parquet-format, in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC = b"PAR1"
_TAIL = 8  # footer length and magic
_SCHEMA = 2  # FileMetaData.schema
_TYPE, _REPETITION, _CHILDREN, _CONVERTED_TYPE = 1, 3, 5, 6  # of SchemaElement
_ANNOTATION = (_CONVERTED_TYPE, 7, 8, 10)  # converted type, scale, precision, logical type
_REPEATED = 2  # FieldRepetitionType.REPEATED
_INTEGERS = (1, 2)  # Type.INT32, Type.INT64
_DECIMAL = 5  # ConvertedType.DECIMAL
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


def plain_integers(file: Any) -> Any | None:
    """The metadata of a Parquet file with its flat INT32 and INT64 decimals as integers; None when it has none of them.

    file: a seekable ``pyarrow.NativeFile``. Raises ValueError for a footer that is not what the format says.
    """
    size = file.size()
    file.seek(size - _TAIL)
    tail = file.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > size - _TAIL:
        return None  # an encrypted footer, or no Parquet: the ordinary reader says what is wrong
    file.seek(size - _TAIL - length)
    footer = file.read(length)
    rewritten = without_decimals(footer)
    if rewritten is None:
        return None
    data = b"".join((_MAGIC, rewritten, len(rewritten).to_bytes(4, "little"), _MAGIC))
    return pq.read_metadata(pa.BufferReader(data))


def without_decimals(footer: bytes) -> bytes | None:
    """The serialized FileMetaData without the decimal annotations of integer columns; None when there are none."""
    cursor = _Cursor(footer)
    for field, kind, _ in cursor.fields():
        if field != _SCHEMA:
            cursor.skip(kind)
            continue
        count = cursor.list_size()
        start = cursor.at
        elements, changed = _flat_decimals_dropped(cursor, count)
        return b"".join((footer[:start], *elements, footer[cursor.at :])) if changed else None
    return None


def _flat_decimals_dropped(cursor: _Cursor, count: int) -> tuple[list[bytes], bool]:
    """The elements of the schema, which are its tree in depth-first order, and whether any was rewritten."""
    elements = []
    changed = False
    open_groups: list[int] = []  # children still to come of the groups around the element
    for _ in range(count):
        start = cursor.at
        values, fields = _element(cursor)
        is_flat = len(open_groups) == 1 and values.get(_REPETITION) != _REPEATED
        if is_flat and values.get(_CONVERTED_TYPE) == _DECIMAL and values.get(_TYPE) in _INTEGERS:
            elements.append(_struct(f for f in fields if f[0] not in _ANNOTATION))
            changed = True
        else:
            elements.append(cursor.data[start : cursor.at])
        if open_groups:
            open_groups[-1] -= 1
        open_groups.append(values.get(_CHILDREN, 0))
        while open_groups and open_groups[-1] == 0:
            open_groups.pop()
    return elements, changed


def _element(cursor: _Cursor) -> tuple[dict[int, int], list[tuple[int, int, bytes]]]:
    """One SchemaElement: the integers that matter here by field, and id, type and bytes of every field."""
    values = {}
    fields = []
    for field, kind, first in cursor.fields():
        if field in (_TYPE, _REPETITION, _CHILDREN, _CONVERTED_TYPE):
            values[field] = cursor.zigzag()
        else:
            cursor.skip(kind)
        fields.append((field, kind, cursor.data[first : cursor.at]))
    return values, fields


def _struct(fields: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Fields in rising order as a struct; each id is written as its distance from the one before."""
    parts = []
    last = 0
    for field, kind, value in fields:
        parts += [bytes([(field - last) << 4 | kind]), value]
        last = field
    return b"".join((*parts, b"\0"))


class _Cursor:
    """Reads values of the compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def _byte(self) -> int:
        if self.at >= len(self.data):
            raise ValueError("the footer ends in the middle of a value")
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def zigzag(self) -> int:
        """A signed integer."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def list_size(self) -> int:
        """The header of a list whose element type is known."""
        head = self._byte()
        return head >> 4 if head >> 4 != 15 else self._varint()

    def fields(self) -> Iterator[tuple[int, int, int]]:
        """Id, type and place of the value of each field of a struct; whoever iterates reads or skips the value."""
        last = 0
        while True:
            head = self._byte()
            if head == 0:
                return
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            yield last, head & 15, self.at

    def skip(self, kind: int) -> None:
        """Pass over a value."""
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self.at += 1
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            length = self._varint()
            self.at += length
        elif kind == _STRUCT:
            for _, inner, _ in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            head = self._byte()
            size = head >> 4 if head >> 4 != 15 else self._varint()
            for _ in range(size):
                self._skip_element(head & 15)
        elif kind == _MAP:
            size = self._varint()
            kinds = self._byte() if size else 0
            for _ in range(size):
                self._skip_element(kinds >> 4)
                self._skip_element(kinds & 15)
        else:
            raise ValueError(f"the footer has a value of unknown type {kind}")

    def _skip_element(self, kind: int) -> None:
        """Booleans in collections take a byte each."""
        if kind in (_TRUE, _FALSE):
            self.at += 1
        else:
            self.skip(kind)
