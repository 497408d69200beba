"""Reads deletion vectors: bitmaps of the deleted rows of a data file in Delta tables and Iceberg tables of version 3.

Both formats store a length, a magic number, the bitmap, and a CRC-32 of magic number and bitmap (Delta's protocol,
"Deletion Vector Format"; Iceberg's Puffin specification, "deletion-vector-v1").
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from kquery_spark.errors import SourceError
from kquery_spark.kernels.roaring import read_positions
from kquery_spark.sources.files import filesystem, local_path
from kquery_spark.sources.object_stores.connections import error_text
from kquery_spark.sources.request_limit import within_limit
from kquery_spark.types.vector import Int64s

MAX_BYTES = 1 << 31
"""Limit (exclusive) for the size of a deletion vector, because Delta and Iceberg store sizes in 32 bits."""
_MAGIC = struct.pack("<I", 1681511377)


@dataclass(frozen=True)
class DeletionVector:
    """The location of the deletion vector of one data file.

    count: the number of deleted rows. nbytes: the size of magic number and bitmap. path, offset: the file of the vector, and
    the position of the vector's length in it. inline: magic number and bitmap, if the table's log contains them.
    """

    count: int
    nbytes: int
    path: str | None = None
    offset: int = 0
    inline: bytes | None = field(default=None, repr=False)

    @property
    def title(self) -> str:
        """A description of the vector for messages."""
        where = "in the table's log" if self.path is None else f"at byte {self.offset} of {self.path}"
        return f"the deletion vector {where}"

    def positions(self) -> Int64s:
        """Read the positions of the deleted rows in ascending order.

        Raises SourceError if the vector is missing or damaged.
        """
        data = _read(self) if self.inline is None else self.inline
        if len(data) != self.nbytes or data[:4] != _MAGIC:
            raise _damaged(self, "it does not begin with the magic number")
        try:
            positions = read_positions(data[4:])
        except ValueError as error:
            raise _damaged(self, str(error)) from None
        if len(positions) != self.count:
            raise _damaged(self, f"it has {len(positions):,} rows, but the table says {self.count:,}")
        return positions


@dataclass(frozen=True)
class DeletedPositions:
    """Decoded positions of deleted rows. data: the positions in ascending order, as 64-bit integers."""

    count: int
    data: bytes = field(repr=False)

    def positions(self) -> Int64s:
        """Return the positions of the deleted rows in ascending order."""
        positions: Int64s = np.frombuffer(self.data, "<i8")
        return positions


def _read(vector: DeletionVector) -> bytes:
    """Read a vector's magic number and bitmap from its file, and check their length and checksum."""
    path = vector.path
    if path is None or not 4 <= vector.nbytes < MAX_BYTES or vector.offset < 0:
        raise _damaged(vector, "the table does not say where it is")
    try:
        if local_path(path) is None:
            framed = within_limit(path, lambda: _read_framed(vector, path))
        else:
            framed = _read_framed(vector, path)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"cannot read {vector.title}: {error_text(error, path)}") from None
    if len(framed) < vector.nbytes + 8:
        raise _damaged(vector, "the file ends within it")
    (length,), data, (checksum,) = (
        struct.unpack(">I", framed[:4]),
        framed[4:-4],
        struct.unpack(">I", framed[-4:]),
    )
    if length != vector.nbytes:
        raise _damaged(vector, f"it is {length:,} bytes long, but the table says {vector.nbytes:,}")
    if zlib.crc32(data) != checksum:
        raise _damaged(vector, "its checksum does not match")
    return bytes(data)


def _read_framed(vector: DeletionVector, path: str) -> bytes:
    """Read a vector with its length and checksum, or less if the file ends before."""
    fs, inner = filesystem(path)
    with fs.open_input_file(inner) as file:
        size = min(vector.nbytes + 8, max(file.size() - vector.offset, 0))  # damaged sizes may be gigabytes
        data: bytes = file.read_at(size, vector.offset)
    return data


def _damaged(vector: DeletionVector, why: str) -> SourceError:
    return SourceError(f"{vector.title} is damaged: {why}")
