"""State on local disk: Arrow IPC files in a directory of the task that is gone when the operator is done.

Operators use a ``SpillDirectory`` as a context manager inside their generator, so that the files are removed at the end,
after an error, and when the consumer stops pulling.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kquery_spark.physical.hashing import partition_ids, partition_order
from kquery_spark.types.batch import Batch, concat
from kquery_spark.types.vector import Vector, decode

if TYPE_CHECKING:
    from kquery_spark.physical.operators.base import Metrics

FAN_OUT = 16
DEEPEST = 3  # 4096 partitions; what is larger then has too few different keys to be split

Keys = Callable[[Batch], Sequence[Vector]]


class SpillFile:
    """Batches of one schema, appended, then read once or more in order."""

    def __init__(self, path: Path, schema: pa.Schema, metrics: Metrics) -> None:
        self._path = path
        self._schema = schema
        self._metrics = metrics
        self._parts: list[Path] = []
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None
        self._form: pa.Schema | None = None
        self.rows = 0
        self.nbytes = 0

    def append(self, batch: Batch) -> None:
        """Write one batch; another physical form than the last one's starts another part."""
        arrays = [decode(c) if pa.types.is_dictionary(c.type) else c for c in batch.columns]
        form = pa.schema([pa.field(str(i), a.type) for i, a in enumerate(arrays)])
        if not arrays:
            raise ValueError("rows without columns need no spilling")
        if self._writer is None or form != self._form:
            self.close()
            part = self._path.with_suffix(f".{len(self._parts)}.arrow")
            self._parts.append(part)
            self._form = form
            self._writer = pa.ipc.new_stream(str(part), form)
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=form))
        self.rows += batch.num_rows
        self.nbytes += sum(a.nbytes for a in arrays)
        self._metrics.add("spilled_bytes", sum(a.nbytes for a in arrays))

    def close(self) -> None:
        """End writing."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def remove(self) -> None:
        """Give the disk space back before the operator ends."""
        self.close()
        for part in self._parts:
            part.unlink(missing_ok=True)
        self._parts = []

    def read(self) -> Iterator[Batch]:
        """All batches in the order they were written."""
        self.close()
        for part in self._parts:
            with pa.OSFile(str(part)) as file, pa.ipc.open_stream(file) as reader:
                for batch in reader:
                    yield Batch(self._schema, tuple(batch.columns), batch.num_rows)


class SpillDirectory:
    """A temporary directory, made when the first file is."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._path: Path | None = None
        self._files: list[SpillFile] = []

    def __enter__(self) -> SpillDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files:
            file.close()
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)

    def file(self, schema: pa.Schema) -> SpillFile:
        """A new, empty file."""
        if self._path is None:
            self._path = Path(tempfile.mkdtemp(prefix="kquery-spill-"))
        done = SpillFile(self._path / str(len(self._files)), schema, self._metrics)
        self._files.append(done)
        self._metrics.add("spill_files", 1)
        return done

    def partitions(self, schema: pa.Schema) -> list[SpillFile]:
        """Files for the rows of ``FAN_OUT`` hash partitions."""
        return [self.file(schema) for _ in range(FAN_OUT)]


def scatter(batch: Batch, keys: Sequence[Vector], files: Sequence[SpillFile], level: int = 0) -> None:
    """Append each row to the file of its keys' hash; equal keys meet, whatever batch or side they come from."""
    ids = partition_ids(keys, batch.num_rows, len(files) ** (level + 2)) // len(files) ** (level + 1)
    order = partition_order(ids, len(files))
    ends = np.cumsum(np.bincount(ids, minlength=len(files)))
    moved = batch.take(pa.array(order))
    start = 0
    for file, end in zip(files, ends.tolist(), strict=True):
        if end > start:
            file.append(moved.slice(start, end - start))
        start = end


def in_partitions(
    source: Iterator[Batch],
    schema: pa.Schema,
    keys: Keys | None,
    limit: int,
    metrics: Metrics,
    level: int = 0,
) -> Iterator[Batch]:
    """All rows as one batch when they fit ``limit`` bytes (or there are no keys), else one batch per hash partition."""
    with SpillDirectory(metrics) as spill:
        held: list[Batch] = []
        size = 0
        files: list[SpillFile] | None = None
        for batch in source:
            held.append(batch)
            size += batch.nbytes
            if keys is not None and level < DEEPEST and size > limit:
                files = files or spill.partitions(schema)
                for one in held:
                    scatter(one, keys(one), files, level)
                held, size = [], 0
        if files is None:
            yield concat(schema, held)
            return
        for one in held:
            assert keys is not None
            scatter(one, keys(one), files, level)
        for file in files:
            if file.rows:
                yield from in_partitions(file.read(), schema, keys, limit, metrics, level + 1)
