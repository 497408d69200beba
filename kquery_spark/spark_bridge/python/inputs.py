"""Converts arguments of Python functions to the form that the release's PySpark worker reads."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from kquery_spark.errors import KQueryError

PLAIN_SERIALIZERS = ("ArrowStreamSerializer", "ArrowStreamGroupSerializer", "ArrowStreamCoGroupSerializer")
"""PySpark's serializers that only copy batches, so that batches can be passed to functions without serialization."""


@dataclass(frozen=True)
class Inputs:
    """Converts Arrow batches to the items that PySpark's function maps.

    deserializer: PySpark's object that reads items from a stream. counts_groups: True if each group is a stream of its own
    after the number of its tables; otherwise each group is a batch of a single stream.
    """

    deserializer: Any
    counts_groups: bool

    def copied(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """The items of a copy of a batch, whose memory functions may not write to."""
        return self._loaded(_stream((batch,)))

    def batch(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """The items of a batch."""
        return iter((_without_slices(batch),)) if self._is_plain else self.copied(batch)

    def group(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        """The item of a group, or an iterator of its batches, if PySpark's function accepts that."""
        if self._is_plain:
            return iter((map(_without_slices, batches),))
        if self.counts_groups:
            return self._loaded(_group_header(_stream(batches)))
        batch = next(batches)
        if next(batches, None) is not None:
            raise KQueryError("a group of rows does not fit one Arrow batch")
        return self.copied(batch)

    def cogroup(self, left: Sequence[pa.RecordBatch], right: Sequence[pa.RecordBatch]) -> Iterator[Any]:
        """The item of two groups with the same key, each of at least one batch."""
        if self._is_plain:
            return iter((([*map(_without_slices, left)], [*map(_without_slices, right)]),))
        return self._loaded(_group_header(_stream(left), _stream(right)))

    @property
    def _is_plain(self) -> bool:
        return type(self.deserializer).__name__ in PLAIN_SERIALIZERS

    def _loaded(self, stream: bytes) -> Iterator[Any]:
        items: Iterator[Any] = self.deserializer.load_stream(io.BytesIO(stream))
        return items


def _without_slices(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Copy nested columns that are slices, so that their children have the rows of the batch only, as after a transfer."""
    if not any(map(pa.types.is_nested, batch.schema.types)):
        return batch
    return pa.ipc.open_stream(_stream((batch,))).read_next_batch()


def _stream(batches: Iterable[pa.RecordBatch]) -> bytes:
    """Serialize one or more batches as PySpark reads them from Spark's socket."""
    source = iter(batches)
    first = next(source)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, first.schema) as writer:
        for batch in chain((first,), source):
            writer.write_batch(batch)
    return sink.getvalue()


def _group_header(*tables: bytes) -> bytes:
    """Return the stream of a single group: the number of its tables, the tables, and 0 for the end of all groups."""
    return b"".join([struct.pack("!i", len(tables)), *tables, struct.pack("!i", 0)])
