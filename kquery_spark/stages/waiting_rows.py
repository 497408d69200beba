"""The rows of a shuffle that wait until their partition has enough rows for a payload, with bounded memory.

The rows of a batch are gathered in the order of their partitions, and each partition gets a slice of the result. A slice
keeps the whole gathered batch in memory. So it is not enough to count the bytes of the slices: if one partition has 99 % of
the rows of each batch, and the other 1 % wait in another partition, then the waiting slices keep the whole input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from kquery_spark.types.batch import Batch, concat


@dataclass
class _Memory:
    """A gathered batch, or copies of pieces. pieces: the number of waiting pieces that keep it in memory."""

    nbytes: int
    dictionary_bytes: int
    pieces: int = 0


class WaitingRows:
    """The waiting rows of each partition.

    payload_bytes: a partition with this number of bytes does not wait. max_bytes: the memory that waiting rows may keep.
    """

    def __init__(self, partitions: int, schema: pa.Schema, payload_bytes: int, max_bytes: int) -> None:
        self._schema = schema
        self._payload_bytes = payload_bytes
        self._max_bytes = max_bytes
        self._waiting: list[list[tuple[Batch, _Memory]]] = [[] for _ in range(partitions)]
        self._sizes = [0] * partitions
        self._total = _Memory(0, 0)

    def add(self, gathered: Batch, ends: list[int]) -> Iterator[tuple[int, Batch]]:
        """Add the rows of one batch, and yield each partition that does not have to wait, with its rows.

        gathered: the rows in the order of their partitions. ends: the end of the rows of each partition.
        """
        memory = _Memory(gathered.nbytes, _dictionary_bytes(gathered))
        self._count(memory, 1)
        start = 0
        for target, end in enumerate(ends):
            if end > start:
                piece = gathered.slice(start, end - start)
                memory.pieces += 1
                self._waiting[target].append((piece, memory))
                self._sizes[target] += piece.nbytes
            start = end
        del gathered
        for target, size in enumerate(self._sizes):
            if size >= self._payload_bytes:
                yield target, self.remove(target)
        if self._total.nbytes > self._max_bytes:
            yield from self._free()

    def remove(self, target: int) -> Batch:
        """Return the waiting rows of a partition, which no longer wait."""
        pieces, self._waiting[target], self._sizes[target] = self._waiting[target], [], 0
        for _, memory in pieces:
            memory.pieces -= 1
            if not memory.pieces:
                self._count(memory, -1)
        return concat(self._schema, [piece for piece, _ in pieces])

    def _count(self, memory: _Memory, times: int) -> None:
        self._total.nbytes += times * memory.nbytes
        self._total.dictionary_bytes += times * memory.dictionary_bytes

    def _free(self) -> Iterator[tuple[int, Batch]]:
        """Yield the largest partitions until the others need at most half of the memory, and copy the rows of these.

        The copies refer to the same dictionaries as the pieces.
        """
        sizes = [sum(p.nbytes - _dictionary_bytes(p) for p, _ in waiting) for waiting in self._waiting]
        nbytes = sum(sizes)
        for target in sorted(range(len(sizes)), key=lambda target: -sizes[target]):
            if 2 * (nbytes + self._total.dictionary_bytes) <= self._max_bytes:
                break
            nbytes -= sizes[target]
            if self._waiting[target]:
                yield target, self.remove(target)
        dictionaries = self._total.dictionary_bytes
        memory = _Memory(nbytes + dictionaries, dictionaries, sum(map(len, self._waiting)))
        self._waiting = [[(_copy(piece), memory) for piece, _ in waiting] for waiting in self._waiting]
        self._total = replace(memory)


def _dictionary_bytes(batch: Batch) -> int:
    return sum(c.dictionary.nbytes for c in batch.columns if pa.types.is_dictionary(c.type))


def _copy(batch: Batch) -> Batch:
    return batch.take(pa.array(np.arange(batch.num_rows)))
