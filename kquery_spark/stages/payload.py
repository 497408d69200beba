"""Batches as bytes: Arrow IPC of the physical forms, so that narrow decimals and dictionaries stay what they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from kquery_spark.physical.expr import Program
from kquery_spark.physical.hashing import bucket_ids, partition_ids, partition_order
from kquery_spark.physical.key_ranges import range_ids
from kquery_spark.physical.operators import Partitioning
from kquery_spark.stages.compact import compact, restored
from kquery_spark.types.batch import Batch, concat, cut
from kquery_spark.types.vector import Vector, decode


def encode(batch: Batch) -> pa.Buffer:
    """One batch as an IPC stream of its columns in their narrowest forms, and one of the text that is stored apart.

    The row count goes along for batches without columns.
    """
    columns = [compact(_small(c)) for c in batch.columns]
    fields = [pa.field(str(i), c.data.type, metadata=c.form) for i, c in enumerate(columns)]
    schema = pa.schema(fields, {b"rows": str(batch.num_rows).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(
            pa.RecordBatch.from_arrays([c.data for c in columns], schema=schema)
            if columns
            else pa.RecordBatch.from_pylist([], schema=schema)
        )
    strings = {str(i): one_cell(c.text) for i, c in enumerate(columns) if c.text is not None}
    if strings:
        apart = pa.RecordBatch.from_pydict(strings)
        with pa.ipc.new_stream(sink, apart.schema) as writer:
            writer.write_batch(apart)
    return sink.getvalue()


def one_cell(content: pa.Buffer) -> pa.Array:
    """One binary value over the buffer's own memory."""
    offsets = pa.array([0, content.size], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, content])


def _small(array: pa.Array) -> pa.Array:
    """A dictionary much larger than the rows that use it is not worth shipping."""
    if pa.types.is_dictionary(array.type) and len(array.dictionary) > len(array):
        return decode(array)
    return array


def decode_payload(data: pa.Buffer | bytes, schema: pa.Schema) -> Batch:
    """The batch that ``encode`` encoded; ``schema`` says names and Spark types."""
    source = pa.BufferReader(data)
    with pa.ipc.open_stream(source) as reader:
        rows = int((reader.schema.metadata or {})[b"rows"])
        batch, forms = reader.read_next_batch(), [f.metadata or {} for f in reader.schema]
        end = list(reader)  # up to the mark of its end
    assert not end
    strings: dict[str, pa.Buffer] = {}
    if any(form.get(b"form") == b"text" for form in forms):
        with pa.ipc.open_stream(source) as reader:
            strings = {
                name: column[0].as_buffer()
                for name, column in zip(reader.schema.names, reader.read_next_batch().columns, strict=True)
            }
    columns = tuple(
        restored(field.type, column, form, strings.get(str(i)))
        for i, (field, column, form) in enumerate(zip(schema, batch.columns, forms, strict=True))
    )
    return Batch(schema, columns, rows)


def partitioned(
    batches: Iterable[Batch], where: Partitioning, schema: pa.Schema, payload_bytes: int
) -> Iterator[tuple[int, Batch]]:
    """Pieces of the batches with the task each belongs to, put together until they are worth a message.

    By ranges and by buckets every task gets a piece, be it empty.
    """
    if where.count == 1:
        for piece in _grouped(batches, schema, payload_bytes):
            yield 0, piece
        return
    program = Program(where.keys, schema)
    waiting: list[list[Batch]] = [[] for _ in range(where.count)]
    sizes = [0] * where.count
    for batch in batches:
        targets = _target_ids(program.run(batch), batch.num_rows, where)
        for target, piece in _by_target(batch, targets, where.count):
            waiting[target].append(piece)
            sizes[target] += piece.nbytes
            if sizes[target] >= payload_bytes:
                yield target, concat(schema, waiting[target])
                waiting[target], sizes[target] = [], 0
    for target, pieces in enumerate(waiting):
        if pieces:
            yield target, concat(schema, pieces)
        elif where.bounds or where.buckets:
            yield target, Batch.empty(schema)


def _target_ids(keys: Sequence[Vector], rows: int, where: Partitioning) -> np.ndarray:
    """The task that each row belongs to."""
    if where.bounds:
        return range_ids(keys[0], rows, where.bounds, where.descending, where.nulls_last)
    if where.buckets:
        return np.array(where.buckets)[bucket_ids(keys, rows, len(where.buckets))]
    return partition_ids(keys, rows, where.count)


def _by_target(batch: Batch, ids: np.ndarray, count: int) -> Iterator[tuple[int, Batch]]:
    """The rows of each target that has some, given every row's target."""
    ends = np.cumsum(np.bincount(ids, minlength=count))
    moved = batch.take(pa.array(partition_order(ids, count)))
    start = 0
    for target, end in enumerate(ends.tolist()):
        if end > start:
            yield target, moved.slice(start, end - start)
        start = end


def result_pieces(batches: Iterable[Batch], schema: pa.Schema, nbytes: int) -> Iterator[Batch]:
    """The rows of a result in pieces of about so many bytes; dictionaries that are not small beside these are decoded.

    A piece of a dictionary column takes all of the dictionary along.
    """

    def pieces() -> Iterator[Batch]:
        for batch in batches:
            plain = _decoded(batch, nbytes // 16)
            yield from cut(plain, max(1, -(-plain.num_rows * nbytes // max(plain.nbytes, 1))))

    return _grouped(pieces(), schema, nbytes)


def _decoded(batch: Batch, nbytes: int) -> Batch:
    large = [pa.types.is_dictionary(c.type) and c.dictionary.nbytes > nbytes for c in batch.columns]
    columns = tuple(decode(c) if one else c for c, one in zip(batch.columns, large, strict=True))
    return Batch(batch.schema, columns, batch.num_rows)


def _grouped(batches: Iterable[Batch], schema: pa.Schema, payload_bytes: int) -> Iterator[Batch]:
    waiting: list[Batch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= payload_bytes:
            yield concat(schema, waiting)
            waiting, size = [], 0
    if waiting:
        yield concat(schema, waiting)
