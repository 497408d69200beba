"""Writes Arrow schemas and tables as Arrow IPC bytes, and reads them back from untrusted bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

from kquery_spark.errors import SerializationError

_EXTENSION = b"ARROW:extension:name"


def write_schema(schema: pa.Schema) -> bytes:
    """Return a schema as an IPC message. Raises SerializationError for extension types, which readers may not know."""
    for dtype in _all_types(schema):
        if isinstance(dtype, pa.BaseExtensionType):
            raise SerializationError(f"the extension type {dtype} has no serialized form")
    return bytes(schema.serialize())


def read_schema(data: bytes) -> pa.Schema:
    """Read a schema that ``write_schema`` wrote."""
    # Reading an extension type that is registered in this process can run its code, so check the bytes first.
    if _EXTENSION in data:
        raise SerializationError("extension types are not allowed in a plan")
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SerializationError(f"not an Arrow schema: {error}") from None


def write_table(table: pa.Table) -> bytes:
    """Return a table as an uncompressed IPC stream."""
    write_schema(table.schema)  # only to reject extension types
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_table(data: bytes) -> pa.Table:
    """Read a table that ``write_table`` wrote. Checks that offsets and dictionary indices stay in their buffers."""
    buffer = pa.py_buffer(data)
    try:
        for message in pa.ipc.MessageReader.open_stream(buffer):
            metadata = message.metadata.to_pybytes()
            if _EXTENSION in metadata:
                raise SerializationError("extension types are not allowed in a plan")
            if _is_compressed(metadata):
                raise SerializationError(
                    "the rows of a plan are compressed; only rows that are not compressed are allowed"
                )
        with pa.ipc.open_stream(buffer) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        raise SerializationError(f"not an Arrow stream: {error}") from None
    return table


def _all_types(schema: pa.Schema) -> Iterator[pa.DataType]:
    """Yield the types of a schema and all types inside of them."""
    pending = list(schema.types)
    while pending:
        dtype = pending.pop()
        yield dtype
        if isinstance(dtype, pa.DictionaryType):
            pending.append(dtype.value_type)
        elif pa.types.is_map(dtype):
            pending += [dtype.key_type, dtype.item_type]
        elif not isinstance(dtype, pa.BaseExtensionType):
            pending += [dtype.field(i).type for i in range(dtype.num_fields)]


# Union tags and field numbers of the flatbuffers in Arrow's Message.fbs.
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_DATA, _COMPRESSION = 1, 3


def _is_compressed(metadata: bytes) -> bool:
    """True if the buffers of an IPC message are compressed: a few compressed bytes could need any amount of memory.

    pyarrow does not expose this, so the flatbuffer is read here: Message -> header -> RecordBatch -> compression. For a
    dictionary batch, the RecordBatch is one level deeper.
    """
    root = struct.unpack_from("<I", metadata, 0)[0]
    kind_at, header_at = _slot(metadata, root, _HEADER_TYPE), _slot(metadata, root, _HEADER)
    if kind_at is None or header_at is None:
        return False
    kind = metadata[kind_at]
    batch = header_at + struct.unpack_from("<I", metadata, header_at)[0]
    if kind == _DICTIONARY_BATCH:
        data_at = _slot(metadata, batch, _DICTIONARY_DATA)
        if data_at is None:
            return False
        batch = data_at + struct.unpack_from("<I", metadata, data_at)[0]
    elif kind != _RECORD_BATCH:
        return False
    return _slot(metadata, batch, _COMPRESSION) is not None


def _slot(metadata: bytes, table: int, index: int) -> int | None:
    """Return the offset of a field of a flatbuffer table; None if the table does not have the field."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    if vtable < 0 or table < 0:
        raise ValueError("a broken message")
    if struct.unpack_from("<H", metadata, vtable)[0] < 2 * index + 6:
        return None
    offset = struct.unpack_from("<H", metadata, vtable + 4 + 2 * index)[0]
    if table + offset >= len(metadata):
        raise ValueError("a broken message")
    return table + offset if offset else None
