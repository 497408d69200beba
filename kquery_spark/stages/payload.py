"""Encodes batches for a shuffle, and divides the rows of a stage among the partitions of an exchange.

A payload is an Arrow IPC stream of compacted columns (see ``compact``). Dictionary-encoded columns and narrow decimals keep
their physical form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.physical.expr import Program
from kquery_spark.physical.hashing import bucket_ids, partition_ids, partition_order
from kquery_spark.physical.key_ranges import range_ids
from kquery_spark.physical.operators import Partitioning
from kquery_spark.stages.compact import compact, restore
from kquery_spark.stages.waiting_rows import WaitingRows
from kquery_spark.types.batch import Batch, coalesced, cut, has_large_dictionary, run_in_parts
from kquery_spark.types.sizes import check_string_bytes
from kquery_spark.types.vector import Vector, decode

_MAX_BATCH_BYTES = 256 << 20  # larger batches are divided before they are concatenated and encoded


def encode(batch: Batch) -> pa.Buffer:
    """Encode a batch as an IPC stream of its compacted columns, followed by a stream of string bytes if there are any.

    The metadata of the schema has the number of rows, which batches without columns need.
    """
    columns = [compact(_encodable(c)) for c in batch.columns]
    fields = [pa.field(str(i), c.data.type, metadata=c.encoding) for i, c in enumerate(columns)]
    schema = pa.schema(fields, {b"rows": str(batch.num_rows).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(
            pa.RecordBatch.from_arrays([c.data for c in columns], schema=schema)
            if columns
            else pa.RecordBatch.from_pylist([], schema=schema)
        )
    string_bytes = {str(i): one_cell(c.text) for i, c in enumerate(columns) if c.text is not None}
    if string_bytes:
        strings = pa.RecordBatch.from_pydict(string_bytes)
        with pa.ipc.new_stream(sink, strings.schema) as writer:
            writer.write_batch(strings)
    return sink.getvalue()


def _encodable(column: pa.Array) -> pa.Array:
    return decode(column) if has_large_dictionary(column) else column


def one_cell(content: pa.Buffer) -> pa.Array:
    """Return an array of one binary value that shares the buffer's memory. Raises BatchTooLarge beyond 2 GiB."""
    check_string_bytes(content.size, "rows")
    offsets = pa.array([0, content.size], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, content])


def decode_payload(data: pa.Buffer | bytes, schema: pa.Schema) -> Batch:
    """Return the batch that ``encode`` encoded. schema: its names and Spark types."""
    source = pa.BufferReader(data)
    with pa.ipc.open_stream(source) as reader:
        rows = int((reader.schema.metadata or {})[b"rows"])
        batch, encodings = reader.read_next_batch(), [f.metadata or {} for f in reader.schema]
        remaining = list(reader)  # reads the end-of-stream marker, so that ``source`` is at the next stream
    assert not remaining
    string_bytes: dict[str, pa.Buffer] = {}
    if any(encoding.get(b"form") == b"text" for encoding in encodings):
        with pa.ipc.open_stream(source) as reader:
            string_bytes = {
                name: column[0].as_buffer()
                for name, column in zip(reader.schema.names, reader.read_next_batch().columns, strict=True)
            }
    columns = tuple(
        restore(field.type, column, encoding, string_bytes.get(str(i)))
        for i, (field, column, encoding) in enumerate(zip(schema, batch.columns, encodings, strict=True))
    )
    return Batch(schema, columns, rows)


def partitioned(
    batches: Iterable[Batch], where: Partitioning, schema: pa.Schema, payload_bytes: int, max_bytes: int
) -> Iterator[tuple[int, Batch]]:
    """Yield pairs (partition, rows): the rows divided by ``where``, in pieces of about ``payload_bytes``.

    Partition i is read by task i of the next stage. For ranges and buckets, every partition gets at least one piece, even
    an empty one: tasks that also read files learn their number from the rows that they receive.

    max_bytes: the memory for rows that wait for more rows of their partition. With many partitions, it can make the pieces
    smaller than ``payload_bytes``.
    """
    if where.count == 1:
        for piece in coalesced(_divide_large(batches), nbytes=payload_bytes):
            yield 0, piece
        return
    program = Program(where.keys, schema)
    waiting = WaitingRows(where.count, schema, payload_bytes, max_bytes)
    for batch in _divide_large(batches):
        targets = _target_ids(program.run(batch), batch.num_rows, where)
        yield from waiting.add(*_by_target(batch, targets, where.count))
    for target in range(where.count):
        rows = waiting.remove(target)
        if rows.num_rows or where.bounds or where.buckets:
            yield target, rows


def _divide_large(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Divide batches of more than ``_MAX_BATCH_BYTES`` bytes, because one payload must have less than 2 GiB."""
    for batch in batches:
        if batch.nbytes <= _MAX_BATCH_BYTES or batch.num_rows < 2:
            yield batch
        else:
            for plain in _decoded(batch, _MAX_BATCH_BYTES):
                yield from _divide_large(cut(plain, (plain.num_rows + 1) // 2))


def _decoded(batch: Batch, piece_bytes: int) -> Iterator[Batch]:
    """Yield the batch with large dictionaries decoded, in parts if the decoded strings exceed Arrow's 32-bit offsets."""
    parts = run_in_parts(lambda part: _decode_dictionaries(part, piece_bytes), batch, repeatable=True)
    return (plain for _, plain in parts)


def _target_ids(keys: Sequence[Vector], rows: int, where: Partitioning) -> np.ndarray:
    """Return the partition of each row."""
    if where.bounds:
        return range_ids(keys[0], rows, where.bounds, where.descending, where.nulls_last)
    if where.buckets:
        return np.array(where.buckets)[bucket_ids(keys, rows, len(where.buckets))]
    return partition_ids(keys, rows, where.count)


def _by_target(batch: Batch, ids: np.ndarray, count: int) -> tuple[Batch, list[int]]:
    """Return the rows in the order of their partitions, and the end of each partition. ids: the partition of each row.

    This is a counting sort: the rows are gathered once, and each partition is a slice of the result. For the ids 1 0 1 of
    two partitions, the ends are 1 and 3, and the gathered rows are 1 | 0 2.
    """
    ends: list[int] = np.cumsum(np.bincount(ids, minlength=count)).tolist()
    return batch.take(pa.array(partition_order(ids, count))), ends


def result_pieces(batches: Iterable[Batch], nbytes: int) -> Iterator[Batch]:
    """Return the rows of a result in pieces of about ``nbytes`` bytes."""

    def pieces() -> Iterator[Batch]:
        for batch in batches:
            for plain in _decoded(batch, nbytes):
                yield from cut(plain, max(1, -(-plain.num_rows * nbytes // max(plain.nbytes, 1))))

    return coalesced(_divide_large(pieces()), nbytes=nbytes)


def _decode_dictionaries(batch: Batch, piece_bytes: int) -> Batch:
    """Decode the columns with large dictionaries, so that the other dictionaries take at most half of ``piece_bytes``.

    Dividing a batch does not divide its dictionaries: each piece contains all of them.
    """
    max_bytes = piece_bytes // max(16, 2 * len(batch.columns))
    columns = tuple(
        decode(c) if pa.types.is_dictionary(c.type) and c.dictionary.nbytes > max_bytes else c
        for c in batch.columns
    )
    return Batch(batch.schema, columns, batch.num_rows)
