"""Reads and writes the parts of Thrift's compact protocol that Parquet's footers and page headers use.

Each field of a struct has a header byte: the high half is the distance from the previous field id, the low half the type.
Integers are zigzag varints. For example, a struct with field 1 = 3 (I32) and field 4 = -1 (I64) has the bytes

    15 06   id 0 + 1, type 5 (I32); zigzag of 3 is 6
    36 01   id 1 + 3, type 6 (I64); zigzag of -1 is 1
    00      end of the struct

Source: thrift-compact-protocol.md of apache/thrift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_MAX_DEPTH = 64  # nesting depth of structs and lists, the same limit as in Thrift's own readers
_MAX_INTEGER = (1 << 64) - 1

Field = tuple[int, int, bytes]
"""The id, type and encoded value of a struct field."""


class Cursor:
    """Reads one value after another. Raises ValueError if the bytes end too early or are not valid Thrift."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self._depth = 0

    def byte(self) -> int:
        """Read one byte."""
        if self.at >= len(self.data):
            raise ValueError("the footer ends in the middle of a value")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        """Read an unsigned integer: seven bits per byte, lowest first; the high bit is 1 in all bytes but the last."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if value > _MAX_INTEGER or shift > 63:
                raise ValueError("the footer has an integer of more than 64 bits")
            if byte < 0x80:
                return value
            shift += 7

    def zigzag(self) -> int:
        """Read a signed integer; zigzag encodes 0, -1, 1, -2, 2 as 0, 1, 2, 3, 4."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """Read a binary, or the UTF-8 bytes of a string."""
        length = self.varint()
        if self.at + length > len(self.data):
            raise ValueError("the footer ends in the middle of a string")
        self.at += length
        return self.data[self.at - length : self.at]

    def list_size(self) -> int:
        """Read the header of a list and return its size; the caller knows the element type."""
        return self._size_after(self.byte())

    def _size_after(self, head: int) -> int:
        """The size of a list. head: the first byte of its header, with sizes up to 14 in the high half, else 15."""
        size = head >> 4 if head >> 4 != 15 else self.varint()
        if size > len(self.data) - self.at:  # each element takes at least one byte
            raise ValueError("the footer ends in the middle of a list")
        return size

    def fields(self) -> Iterator[tuple[int, int, int]]:
        """Yield the id and type of each field of a struct, and the offset of its value.

        The caller must read or skip the value before it asks for the next field.
        """
        last = 0
        while True:
            head = self.byte()
            if head == 0:
                return
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            yield last, head & 15, self.at

    def skip(self, kind: int) -> None:
        """Skip a value of a type."""
        skip = _SKIPS.get(kind)
        if skip is None or self._depth >= _MAX_DEPTH:
            raise ValueError(f"the footer has a value of unknown type {kind}, or nested too deeply")
        self._depth += 1
        skip(self)
        self._depth -= 1

    def _advance(self, size: int) -> None:
        self.at += size

    def _skip_struct(self) -> None:
        for _, kind, _ in self.fields():
            self.skip(kind)

    def _skip_list(self) -> None:
        head = self.byte()
        for _ in range(self._size_after(head)):
            self._skip_element(head & 15)

    def _skip_map(self) -> None:
        size = self.varint()
        kinds = self.byte() if size else 0
        if size > len(self.data) - self.at:
            raise ValueError("the footer ends in the middle of a map")
        for _ in range(size):
            self._skip_element(kinds >> 4)
            self._skip_element(kinds & 15)

    def _skip_element(self, kind: int) -> None:
        """Skip an element of a collection, where a boolean takes one byte; in a struct, the field type is its value."""
        if kind in (TRUE, FALSE):
            self.at += 1
        else:
            self.skip(kind)


_SKIPS: dict[int, Callable[[Cursor], object]] = {
    TRUE: lambda cursor: None,  # the type of the field is its value
    FALSE: lambda cursor: None,
    BYTE: lambda cursor: cursor._advance(1),
    I16: Cursor.varint,
    I32: Cursor.varint,
    I64: Cursor.varint,
    DOUBLE: lambda cursor: cursor._advance(8),
    BINARY: Cursor.binary,
    LIST: Cursor._skip_list,
    SET: Cursor._skip_list,
    MAP: Cursor._skip_map,
    STRUCT: Cursor._skip_struct,
}


def struct(fields: Iterable[Field]) -> bytes:
    """Encode a struct. fields: in rising order of their ids, with gaps of at most 15."""
    parts = []
    last = 0
    for field, kind, value in fields:
        parts += [bytes([(field - last) << 4 | kind]), value]
        last = field
    return b"".join((*parts, b"\0"))


def integer(value: int) -> bytes:
    """Encode a signed integer of 16, 32 or 64 bits."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def binary(value: bytes) -> bytes:
    """Encode a binary or the UTF-8 bytes of a string."""
    return varint(len(value)) + value


def listed(kind: int, values: Sequence[bytes]) -> bytes:
    """Encode a list. kind: the type of the elements. values: the encoded elements."""
    size = len(values)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + varint(size)
    return head + b"".join(values)


def varint(value: int) -> bytes:
    """Encode an unsigned integer: seven bits per byte, lowest first. For example, 300 becomes AC 02."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
