"""Spills the state of operators that exceeds the memory budget to local disk, in unnamed temporary files.

Operators use a ``SpillDirectory`` as a context manager inside their generator, so the disk space is freed when the operator
ends, after an error, and when the consumer stops pulling batches.

Spilled rows are divided by a hash of their keys into FAN_OUT = 16 partitions, so equal keys are in the same partition,
and partitions can be processed one by one. A partition that is still too large is divided again by another hash.
Example: 100 GB of state gives 16 partitions of 6 GB at level 0, 256 of 400 MB at level 1, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from kquery_spark.physical.hashing import partition_order, spill_partition_ids
from kquery_spark.physical.spill_store import SpillStore
from kquery_spark.run_control import check_run
from kquery_spark.types.batch import Batch, concat, drain
from kquery_spark.types.vector import Vector, decode

if TYPE_CHECKING:
    from kquery_spark.physical.operators.base import Metrics

FAN_OUT = 16
MAX_LEVEL = 3  # the last level; a partition that is still too large has too few distinct keys to be divided

_SCATTERED_ROWS = 1 << 17  # rows that are copied to partitions at a time
# Memory of a grouped or hashed row beside its values: its hash, group number, and position.
_HASHED_ROW_BYTES = 24

SPILLED_BYTES = "spilled_bytes"
"""The name in an operator's metrics of the bytes that it wrote to disk."""

Keys = Callable[[Batch], Sequence[Vector]]


def hashed_bytes(nbytes: int, rows: int) -> int:
    """Return the memory that rows of ``nbytes`` need when they are grouped or hashed."""
    return nbytes + _HASHED_ROW_BYTES * rows


class _Block(NamedTuple):
    """A batch in a store: its position, size, physical types, and number of rows. Without columns, nothing is stored."""

    start: int
    nbytes: int
    form: pa.Schema
    rows: int


class SpillFile:
    """A sequence of batches with one schema, which is written first and then read any number of times.

    Several files may share a store.
    """

    def __init__(self, store: SpillStore, schema: pa.Schema, metrics: Metrics) -> None:
        self.store = store
        self.schema = schema
        self._metrics = metrics
        self._blocks: list[_Block] = []
        self._form = pa.schema([])
        self.rows = 0
        self.nbytes = 0

    def append(self, batch: Batch) -> None:
        """Write one batch. Raises if the run was stopped, because a caller may spill gigabytes in one loop."""
        check_run()
        arrays = [decode(c) if pa.types.is_dictionary(c.type) else c for c in batch.columns]
        if [a.type for a in arrays] != self._form.types:
            self._form = pa.schema([pa.field(str(i), a.type) for i, a in enumerate(arrays)])
        start = size = 0
        if arrays:
            data = pa.RecordBatch.from_arrays(arrays, schema=self._form).serialize()
            start, size = self.store.append(data), data.size
        self._blocks.append(_Block(start, size, self._form, batch.num_rows))
        self.rows += batch.num_rows
        self.nbytes += sum(a.nbytes for a in arrays)
        self._metrics.add(SPILLED_BYTES, sum(a.nbytes for a in arrays))

    def remove(self) -> None:
        """Free the disk space before the operator ends. Only for a file with a store of its own."""
        self._blocks = []
        self.store.close()

    def read(self) -> Iterator[Batch]:
        """Yield all batches in the order in which they were written."""
        for start, nbytes, form, rows in self._blocks:
            check_run()
            if not form.names:
                yield Batch(self.schema, (), rows)
                continue
            batch = pa.ipc.read_record_batch(self.store.read(start, nbytes), form)
            yield Batch(self.schema, tuple(batch.columns), batch.num_rows)


class SpillDirectory:
    """The spill files of an operator in one task. No file is opened before there are rows to spill."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._stores: list[SpillStore] = []

    def __enter__(self) -> SpillDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for store in self._stores:
            store.close()

    def file(self, schema: pa.Schema, share_store_with: SpillFile | None = None) -> SpillFile:
        """Return a new, empty file. share_store_with: a file whose store it shares, so that only one file is open."""
        return self._files(schema, 1, share_store_with)[0]

    def partitions(self, schema: pa.Schema) -> list[SpillFile]:
        """Return one file for each of the ``FAN_OUT`` hash partitions. They share a store, so that only one file is open."""
        return self._files(schema, FAN_OUT)

    def _files(
        self, schema: pa.Schema, count: int, share_store_with: SpillFile | None = None
    ) -> list[SpillFile]:
        if share_store_with is not None:
            store = share_store_with.store
        else:
            store = SpillStore()
            self._stores.append(store)
        self._metrics.add("spill_files", count)
        return [SpillFile(store, schema, self._metrics) for _ in range(count)]


def scatter(batch: Batch, keys: Sequence[Vector], files: Sequence[SpillFile], level: int = 0) -> None:
    """Append each row to the file for the hash of its keys, so rows with equal keys are in files of the same number.

    level: each level divides the rows by another hash, which is also independent of the one that an exchange uses.
    """
    ids = spill_partition_ids(keys, batch.num_rows, len(files), level)
    for first in range(0, batch.num_rows, _SCATTERED_ROWS):
        part = ids[first : first + _SCATTERED_ROWS]
        order = partition_order(part, len(files))
        ends = np.cumsum(np.bincount(part, minlength=len(files)))
        moved = batch.take(pa.array(order + first))
        start = 0
        for file, end in zip(files, ends.tolist(), strict=True):
            if end > start:
                file.append(moved.slice(start, end - start))
            start = end


class HashPartitions:
    """Rows on disk in hash partitions of their keys. The files are created with the first rows."""

    def __init__(self, spill: SpillDirectory, schema: pa.Schema, keys: Keys, level: int) -> None:
        self.files: list[SpillFile] = []
        self._spill = spill
        self._schema = schema
        self._keys = keys
        self._level = level

    def add(self, batches: Iterable[Batch]) -> None:
        """Write the rows to their partitions."""
        self.files = self.files or self._spill.partitions(self._schema)
        for batch in batches:
            scatter(batch, self._keys(batch), self.files, self._level)

    def non_empty(self) -> list[SpillFile]:
        """Return the partitions that have rows."""
        return [file for file in self.files if file.rows]


def batches_by_hash_partition(
    source: Iterator[Batch],
    schema: pa.Schema,
    keys: Keys | None,
    limit: int,
    metrics: Metrics,
    level: int = 0,
) -> Iterator[Batch]:
    """Yield all rows as one batch if they fit into ``limit`` bytes, otherwise one batch per hash partition of the keys.

    Without keys, there is always one batch. A partition that is still too large is divided again, down to ``MAX_LEVEL``.
    """
    if keys is None:
        yield concat(schema, list(source))
        return
    with SpillDirectory(metrics) as spill:
        spilled = HashPartitions(spill, schema, keys, level)
        held: list[Batch] = []
        size = 0
        for batch in source:
            held.append(batch)
            size += hashed_bytes(batch.nbytes, batch.num_rows)
            if level < MAX_LEVEL and size > limit:
                spilled.add(drain(held))
                size = 0
        if not spilled.files:
            yield concat(schema, held)
            return
        spilled.add(drain(held))
        for file in spilled.non_empty():
            yield from batches_by_hash_partition(file.read(), schema, keys, limit, metrics, level + 1)
