"""Splits the stream of payload rows that a task receives by the stages that wrote them, with bounded memory.

Spark sends the rows of all stages that a task reads in one stream, in any order. A join reads its build side to the end
before it reads its probe side. Any row may be the last one of the build side, so payloads of the probe side that arrive
earlier have to wait. They wait in memory up to a limit, and beyond it in a scratch file.

Example: the stream is P1 P2 B1 P3 B2, and the join asks for the payloads of B. P1 and P2 wait, B1 is read, P3 waits, and B2
is read. If P1, P2 and P3 together exceed the limit, they are on disk when the join asks for P.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import NamedTuple

import pyarrow as pa

from kquery_spark.physical.operators import Metrics
from kquery_spark.physical.spill import SPILLED_BYTES
from kquery_spark.physical.spill_store import SpillStore


class _OnDisk(NamedTuple):
    """The position and the size of a payload in the scratch file."""

    start: int
    nbytes: int


class PayloadSource(NamedTuple):
    """A stage whose payloads a task reads.

    tag: the number of the stage in its payload rows. readings: how many times the plan reads the payloads. metrics: those
    of the operator that reads them.
    """

    tag: int
    readings: int
    metrics: Metrics


class PayloadStreams:
    """The payloads of several stages. It is a context manager: its end frees the scratch file.

    rows: the payload rows. max_bytes: the bytes of payloads that may wait in memory.
    """

    def __init__(
        self, rows: Iterator[pa.RecordBatch], sources: Mapping[str, PayloadSource], max_bytes: int
    ) -> None:
        self._rows = rows
        self._sources = sources
        self._max_bytes = max_bytes
        self._waiting: dict[int, deque[pa.Buffer | _OnDisk]] = {s.tag: deque() for s in sources.values()}
        self._in_memory = dict.fromkeys(self._waiting, 0)
        self._store: SpillStore | None = None

    def __enter__(self) -> PayloadStreams:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for waiting in self._waiting.values():
            waiting.clear()
        try:
            if kind is None:
                # Spark does not reuse a worker that has not read all of its rows, so read what is left.
                deque(self._rows, maxlen=0)
        finally:
            if self._store is not None:
                self._store.close()

    def read(self, name: str) -> Iterator[pa.Buffer]:
        """Yield the payloads of a source. A payload that is read only once is released before the next one is loaded."""
        source = self._sources[name]
        waiting = self._waiting[source.tag]
        if source.readings > 1:
            position = 0
            while position < len(waiting) or self._receive(source.tag):
                if position < len(waiting):
                    yield self._load(waiting[position])
                    position += 1
            return
        while waiting or self._receive(source.tag):
            if waiting:
                payload = waiting.popleft()
                if not isinstance(payload, _OnDisk):
                    self._in_memory[source.tag] -= payload.size
                yield self._load(payload)
                del payload

    def _load(self, payload: pa.Buffer | _OnDisk) -> pa.Buffer:
        if not isinstance(payload, _OnDisk):
            return payload
        assert self._store is not None
        return self._store.read(payload.start, payload.nbytes)

    def _receive(self, read_tag: int) -> bool:
        """Receive the next batch of payload rows; return False if there is none. read_tag: the tag that the caller reads.

        Payloads of other stages are written to disk if too many of them wait.
        """
        batch = next(self._rows, None)
        if batch is None:
            return False
        for tag, cell in zip(batch.column(0).to_pylist(), batch.column(2), strict=True):
            # This is a copy of the cell, so the batch can be freed while the payload waits.
            payload = cell.as_buffer()
            self._waiting[tag].append(payload)
            self._in_memory[tag] += payload.size
        if sum(self._in_memory.values()) > self._max_bytes:
            for source in self._sources.values():
                # The caller is about to read the payloads of ``read_tag``. If it reads them only once, spilling them is
                # useless; otherwise all of them stay until the end of the task.
                if source.tag != read_tag or source.readings > 1:
                    self._spill(source)
        return True

    def _spill(self, source: PayloadSource) -> None:
        """Write the payloads of a source that wait in memory to the scratch file."""
        waiting, nbytes = self._waiting[source.tag], self._in_memory[source.tag]
        if not nbytes:
            return
        if self._store is None:
            self._store = SpillStore()
        for position, payload in enumerate(waiting):
            if not isinstance(payload, _OnDisk):
                waiting[position] = _OnDisk(self._store.append(payload), payload.size)
        self._in_memory[source.tag] = 0
        source.metrics.add(SPILLED_BYTES, nbytes)
