"""Thrift's compact protocol, as far as Parquet's own structures need it: a cursor over bytes, and structs built from bytes.

Source: thrift-compact-protocol.md of apache/thrift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

_MAX_DEPTH = 64  # of structs and lists in each other, as in Thrift's own readers
_MAX_INTEGER = (1 << 64) - 1

Field = tuple[int, int, bytes]
"""Id, type and encoded value of a struct's field."""


class Cursor:
    """Reads values one after the other; ValueError where the bytes end too early or are no Thrift."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self._depth = 0

    def byte(self) -> int:
        """One byte."""
        if self.at >= len(self.data):
            raise ValueError("the footer ends in the middle of a value")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        """An unsigned integer."""
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
        """A signed integer."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """Bytes, or the UTF-8 of a text."""
        length = self.varint()
        if self.at + length > len(self.data):
            raise ValueError("the footer ends in the middle of a text")
        self.at += length
        return self.data[self.at - length : self.at]

    def list_size(self) -> int:
        """The header of a list whose element type is known."""
        return self._size_after(self.byte())

    def _size_after(self, head: int) -> int:
        """The size of a list by the first byte of its header; each element takes a byte at least."""
        size = head >> 4 if head >> 4 != 15 else self.varint()
        if size > len(self.data) - self.at:
            raise ValueError("the footer ends in the middle of a list")
        return size

    def fields(self) -> Iterator[tuple[int, int, int]]:
        """Id, type and offset of the value of each field of a struct; the caller reads or skips the value."""
        last = 0
        while True:
            head = self.byte()
            if head == 0:
                return
            last = last + (head >> 4) if head >> 4 else self.zigzag()
            yield last, head & 15, self.at

    def skip(self, kind: int) -> None:
        """Pass over a value."""
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
        """Booleans in collections take a byte each."""
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
    """Fields in rising order as a struct; each id is written as its distance from the one before."""
    parts = []
    last = 0
    for field, kind, value in fields:
        parts += [bytes([(field - last) << 4 | kind]), value]
        last = field
    return b"".join((*parts, b"\0"))


def integer(value: int) -> bytes:
    """A signed integer of 16, 32 or 64 bits."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def binary(value: bytes) -> bytes:
    """Bytes or a text."""
    return varint(len(value)) + value


def listed(kind: int, values: Sequence[bytes]) -> bytes:
    """A list of values of one type."""
    size = len(values)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + varint(size)
    return head + b"".join(values)


def varint(value: int) -> bytes:
    """An unsigned integer."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
