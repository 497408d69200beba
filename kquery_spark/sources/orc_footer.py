"""What an ORC footer says that pyarrow does not: the calendar of its days, and the range of each timestamp column.

The footer is a protobuf message (``orc_proto.proto`` of the ORC project) in compressed chunks; the few fields that are
read here are taken from the wire format, so that no generated code is needed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kquery_spark.types.vector import Int64s

_PROLEPTIC = 2
_GREGORIAN_DAYS = -141_427  # 1582-10-15
_JULIAN_EPOCH = 719_470  # days from 0000-03-01 of the Julian calendar to 1970-01-01 of the Gregorian one
_GREGORIAN_EPOCH = 719_468  # and from 0000-03-01 of the Gregorian calendar


@dataclass(frozen=True)
class OrcFacts:
    """proleptic: days before 1582-10-15 are Gregorian, too. timestamps: lowest and highest milliseconds by column."""

    proleptic: bool
    timestamps: dict[str, tuple[int, int]]


def orc_facts(file: Any) -> OrcFacts | None:
    """The facts of an open random access file; None where the footer cannot be understood."""
    try:
        size = file.size()
        tail = file.read_at(min(size, 16 * 1024), max(0, size - 16 * 1024))
        length = tail[-1]
        post = dict(_fields(tail[-1 - length : -1]))
        footer_length = int(post[1])
        whole = file.read_at(footer_length, size - 1 - length - footer_length)
        return _facts(_decompressed(whole, int(post.get(2, 0)), int(post.get(3, 256 * 1024))))
    except (KeyError, IndexError, ValueError, TypeError, OSError, zlib.error, pa.ArrowException):
        return None


def _facts(footer: bytes) -> OrcFacts:
    kinds: list[list[tuple[int, Any]]] = []
    statistics: list[dict[int, Any]] = []
    calendar = 0
    for number, value in _fields(footer):
        if number == 4:
            kinds.append(list(_fields(value)))
        elif number == 7:
            statistics.append(dict(_fields(value)))
        elif number == 11:
            calendar = value
    names = [v.decode() for n, v in kinds[0] if n == 3]
    columns = [c for n, v in kinds[0] if n == 2 for c in ([v] if isinstance(v, int) else _varints(v))]
    ranges: dict[str, tuple[int, int]] = {}
    for name, column in zip(names, columns, strict=True):
        if column < len(statistics) and 9 in statistics[column]:
            found = dict(_fields(statistics[column][9]))
            if 3 in found and 4 in found:
                ranges[name] = _signed(found[3]), _signed(found[4])
    return OrcFacts(calendar == _PROLEPTIC, ranges)


def _decompressed(data: bytes, codec: int, block: int) -> bytes:
    """Chunks of three bytes of header (length and whether they are as they were) and their content."""
    if codec == 0:
        return data
    parts = []
    place = 0
    while place < len(data):
        header = int.from_bytes(data[place : place + 3], "little")
        chunk = data[place + 3 : place + 3 + (header >> 1)]
        place += 3 + (header >> 1)
        parts.append(chunk if header & 1 else _chunk(chunk, codec, block))
    return b"".join(parts)


def _chunk(chunk: bytes, codec: int, block: int) -> bytes:
    match codec:
        case 1:
            return zlib.decompress(chunk, -15)
        case 2:
            return bytes(pa.decompress(chunk, next(_varints(chunk)), codec="snappy", asbytes=True))
        case 5:
            return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read())
    raise ValueError(f"no codec {codec} for chunks of {block} bytes")


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(field number, value) of a message; what has a length comes as bytes."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        match key & 7:
            case 0:
                value, place = _varint(data, place)
                yield key >> 3, value
            case 2:
                length, place = _varint(data, place)
                yield key >> 3, data[place : place + length]
                place += length
            case 1 | 5 as wire:
                place += 8 if wire == 1 else 4
            case wire:
                raise ValueError(f"wire type {wire}")


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def _varints(data: bytes) -> Iterator[int]:
    place = 0
    while place < len(data):
        value, place = _varint(data, place)
        yield value


def _signed(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def gregorian_days(days: Int64s) -> Int64s:
    """Days since 1970 of the hybrid calendar, Julian before 1582-10-15, as the Gregorian days of the same dates.

    A 29 February that the Gregorian calendar lacks becomes 1 March, as in Spark's ``RebaseDateTime``.
    """
    early = days < _GREGORIAN_DAYS
    if not early.any():
        return days
    since = days[early] + _JULIAN_EPOCH
    cycle, day = np.divmod(since, 1461)  # four years from a 1 March on
    year = np.minimum(day // 365, 3)
    day_of_year = day - 365 * year
    years = 4 * cycle + year
    done = 365 * years + years // 4 - years // 100 + years // 400 + day_of_year - _GREGORIAN_EPOCH
    result = days.copy()
    result[early] = done
    return result
