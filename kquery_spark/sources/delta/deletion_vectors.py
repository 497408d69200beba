"""Parses descriptors of deletion vectors, from Delta's log and from Delta's scans (Delta's protocol, "Deletion Vectors").

A descriptor says where a vector is stored: in a file next to the table that is named by a UUID ("u"), in a file with an
absolute path ("p"), or inline in the log ("i"). UUIDs and inline vectors are encoded in base 85.
"""

from __future__ import annotations

import base64
import struct
import uuid
from urllib.parse import unquote, urlparse

from kquery_spark.errors import SourceError
from kquery_spark.sources.deletes.deletion_vectors import MAX_BYTES, DeletionVector

_INLINE, _BY_UUID, _ABSOLUTE, _RELATIVE = "i", "u", "p", "r"
_UUID_LENGTH = 20  # characters in base 85
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_HEADER = struct.Struct(">qic")


def encoded_deletion_vector(text: str, table: str) -> DeletionVector:
    """Parse the descriptor that Delta passes to its file reader (``DeletionVectorDescriptor.serializeToBase64``).

    The decoded bytes are: cardinality (8 bytes), size (4), storage type (1), offset (4, files only), length of the path (2),
    path. table: the table's path, without a final slash and not escaped. Raises SourceError for a malformed descriptor.
    """
    try:
        data = base64.b64decode(text, validate=True)
        count, nbytes, marker = _HEADER.unpack_from(data)
        at, offset = _HEADER.size, 0
        storage = marker.decode("ascii")
        # An offset follows only if the vector is in a file and its storage type is in lower case.
        if storage.islower() and storage != _INLINE:
            (offset,) = struct.unpack_from(">i", data, at)
            at += 4
        (length,) = struct.unpack_from(">H", data, at)
        where = data[at + 2 :]
        if len(where) != length:
            raise ValueError(f"its place has {len(where)} bytes instead of {length}")
        return deletion_vector(storage.lower(), where.decode("utf-8"), offset, nbytes, count, table)
    except (ValueError, struct.error) as error:
        raise SourceError(f"{table} has a deletion vector that cannot be found: {error}") from None


def deletion_vector(
    storage: str, where: str, offset: int, nbytes: int, count: int, table: str
) -> DeletionVector:
    """Build the location of a deletion vector from the fields of a descriptor.

    The parameters are ``storageType``, ``pathOrInlineDv``, ``offset``, ``sizeInBytes`` and ``cardinality`` of Delta's log.
    table: the table's path. Raises ValueError for a descriptor that Delta's protocol does not define.
    """
    if not 4 <= nbytes < MAX_BYTES or count < 0 or offset < 0:
        raise ValueError(f"it has {count} rows in {nbytes} bytes at {offset}")
    if storage == _INLINE:
        return DeletionVector(count, nbytes, inline=_decode(where)[:nbytes])
    if storage == _BY_UUID:
        prefix, name = where[:-_UUID_LENGTH], where[-_UUID_LENGTH:]
        directory = f"{table}/{prefix}" if prefix else table
        path = f"{directory}/deletion_vector_{uuid.UUID(bytes=_decode(name))}.bin"
    elif storage == _ABSOLUTE:
        if not urlparse(where).scheme:
            raise ValueError(f"{where} is not an absolute path")
        path = unquote(where)
    elif storage == _RELATIVE:
        path = f"{table}/{where}"
    else:
        raise ValueError(f"it is stored in the way {storage}, which is not known")
    return DeletionVector(count, nbytes, path, offset)


def _decode(text: str) -> bytes:
    """Decode Z85, in which five characters encode four bytes; Python's base 85 has the same code but other characters."""
    if len(text) % 5 or not set(text) <= set(_Z85):
        raise ValueError(f"{text!r} is not in base 85")
    return base64.b85decode(text.translate(_TO_B85))
