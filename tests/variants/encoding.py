"""Variants written byte by byte, in ways in which Spark's own writer does not write them, too."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_EPOCH = dt.datetime(1970, 1, 1)
Encoded = tuple[bytes, bytes]


@dataclass(frozen=True)
class Raw:
    """A value that is encoded already."""

    value: bytes


@dataclass(frozen=True)
class Widths:
    """How wide numbers are at least, and whether the size of a container takes four bytes."""

    ids: int = 1
    offsets: int = 1
    large: bool = False
    names: int = 1


def primitive(kind: int, payload: bytes = b"") -> bytes:
    """A primitive value."""
    return bytes([kind << 2]) + payload


def integer(value: int, size: int) -> bytes:
    """An integer of 1, 2, 4 or 8 bytes."""
    return primitive({1: 3, 2: 4, 4: 5, 8: 6}[size], value.to_bytes(size, "little", signed=True))


def decimal(unscaled: int, scale: int, size: int) -> bytes:
    """A decimal of 4, 8 or 16 bytes."""
    kind = {4: 8, 8: 9, 16: 10}[size]
    return primitive(kind, bytes([scale]) + unscaled.to_bytes(size, "little", signed=True))


def long_text(text: str) -> bytes:
    """A string whose length takes four bytes."""
    return primitive(16, len(text.encode()).to_bytes(4, "little") + text.encode())


def timestamp(micros: int, has_zone: bool) -> bytes:
    """A timestamp."""
    return primitive(12 if has_zone else 13, struct.pack("<q", micros))


def encoded(value: Any, widths: Widths = Widths(), names: Sequence[str] | None = None) -> Encoded:
    """The value and the metadata of what Python has: None, bool, int, float, Decimal, date, str, bytes, UUID, list, dict.

    names: those of the metadata, in its order; else those of the value's objects.
    """
    known = list(names) if names is not None else list(dict.fromkeys(_names(value)))
    return _value(value, widths, known), metadata(known, widths.names)


def metadata(names: Sequence[str], width: int = 1, is_sorted: bool = False) -> bytes:
    """The metadata of some names."""
    strings = [name.encode() for name in names]
    offsets = [sum(map(len, strings[:i])) for i in range(len(strings) + 1)]
    width = max(width, _width(max(offsets[-1], len(names))))
    numbers = b"".join(n.to_bytes(width, "little") for n in (len(names), *offsets))
    return bytes([1 | is_sorted << 4 | (width - 1) << 6]) + numbers + b"".join(strings)


def _names(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _names(item)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _value(value: Any, widths: Widths, names: Sequence[str]) -> bytes:
    match value:
        case Raw():
            return value.value
        case None:
            return primitive(0)
        case bool():
            return primitive(1 if value else 2)
        case int():
            return integer(
                value, next(s for s in (1, 2, 4, 8) if -(1 << 8 * s - 1) <= value < 1 << 8 * s - 1)
            )
        case float():
            return primitive(7, struct.pack("<d", value))
        case Decimal():
            sign, digits, exponent = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            size = (
                4
                if len(digits) <= 9 and -exponent <= 9
                else 8
                if len(digits) <= 18 and -exponent <= 18
                else 16
            )
            return decimal(unscaled, -int(exponent), size)
        case dt.datetime():
            has_zone = value.tzinfo is not None
            return timestamp((value.replace(tzinfo=None) - _EPOCH) // dt.timedelta(microseconds=1), has_zone)
        case dt.date():
            return primitive(11, struct.pack("<i", (value - _EPOCH.date()).days))
        case str():
            text = value.encode()
            return bytes([len(text) << 2 | 1]) + text if len(text) < 64 else long_text(value)
        case bytes():
            return primitive(15, len(value).to_bytes(4, "little") + value)
        case uuid.UUID():
            return primitive(20, value.bytes)
        case list():
            return _container([_value(item, widths, names) for item in value], None, widths)
        case dict():
            fields = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
            items = [_value(item, widths, names) for _, item in fields]
            return _container(items, [names.index(name) for name, _ in fields], widths)
    raise TypeError(type(value))


def _container(items: Sequence[bytes], ids: Sequence[int] | None, widths: Widths) -> bytes:
    offsets = [sum(map(len, items[:i])) for i in range(len(items) + 1)]
    width = max(widths.offsets, _width(offsets[-1]))
    is_large = widths.large or len(items) > 255
    body = len(items).to_bytes(4 if is_large else 1, "little")
    if ids is None:
        header = (is_large << 2 | width - 1) << 2 | 3
    else:
        id_width = max(widths.ids, _width(max(ids, default=0)))
        header = (is_large << 4 | (id_width - 1) << 2 | width - 1) << 2 | 2
        body += b"".join(i.to_bytes(id_width, "little") for i in ids)
    return bytes([header]) + body + b"".join(o.to_bytes(width, "little") for o in offsets) + b"".join(items)


def write_variants(path: str, variants: Sequence[Encoded | None], row_group_size: int = 1000) -> None:
    """A Parquet file of ``id BIGINT, v VARIANT``."""
    rows = [None if v is None else {"value": v[0], "metadata": v[1]} for v in variants]
    kind = pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)])
    table = pa.table({"id": pa.array(range(len(rows)), pa.int64()), "v": pa.array(rows, kind)})
    pq.write_table(table, path, row_group_size=row_group_size)
