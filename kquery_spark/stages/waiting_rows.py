"""The rows of a shuffle that wait until their partition has enough rows for a payload, with bounded memory.

The rows of a batch are gathered in the order of their partitions, and each partition gets a slice of the result. A slice
keeps the whole gathered batch in memory. So it is not enough to count the bytes of the slices: if one partition has 99 % of
the rows of each batch, and the other 1 % wait in another partition, then the waiting slices keep the whole input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kquery_spark.types.batch import Batch, concat


@dataclass
class _MemoryUnit:
    """A gathered batch, or the copies of one partition's pieces, as a unit that is freed together.

    nbytes: the bytes without those of dictionaries. dictionaries: the bytes of each dictionary by its address, because units
    may share dictionaries.
    pieces: the number of waiting pieces that keep the unit in memory.
    """

    nbytes: int
    dictionaries: Mapping[int, int]
    pieces: int = 0


class WaitingRows:
    """The waiting rows of each partition.

    payload_bytes: a partition with this number of bytes does not wait. max_bytes: the memory that waiting rows may keep.
    """

    def __init__(self, partitions: int, schema: pa.Schema, payload_bytes: int, max_bytes: int) -> None:
        self._schema = schema
        self._payload_bytes = payload_bytes
        self._max_bytes = max_bytes
        self._waiting: list[list[tuple[Batch, _MemoryUnit]]] = [[] for _ in range(partitions)]
        self._sizes = [0] * partitions
        self._nbytes = 0  # of all units, without dictionaries
        self._dictionaries: dict[int, int] = {}  # the bytes of each dictionary by its address
        self._uses: Counter[int] = Counter()  # the number of units that use a dictionary

    def add(self, gathered: Batch, ends: list[int]) -> Iterator[tuple[int, Batch]]:
        """Add the rows of one batch, and yield each partition that does not have to wait, with its rows.

        gathered: the rows in the order of their partitions. ends: the end of the rows of each partition.
        """
        memory = _MemoryUnit(_bytes_without_dictionaries(gathered), _dictionaries(gathered))
        start = 0
        for target, end in enumerate(ends):
            if end > start:
                piece = gathered.slice(start, end - start)
                memory.pieces += 1
                self._waiting[target].append((piece, memory))
                self._sizes[target] += piece.nbytes
            start = end
        if memory.pieces:
            self._hold(memory)
        del gathered
        for target, size in enumerate(self._sizes):
            if size >= self._payload_bytes:
                yield target, self.remove(target)
        if self._nbytes + self._dictionary_bytes > self._max_bytes:
            yield from self._shrink()

    def remove(self, target: int) -> Batch:
        """Remove the waiting rows of a partition, and return them as one batch."""
        pieces, self._waiting[target], self._sizes[target] = self._waiting[target], [], 0
        self._forget(pieces)
        return concat(self._schema, [piece for piece, _ in pieces])

    @property
    def _dictionary_bytes(self) -> int:
        return sum(self._dictionaries.values())

    def _hold(self, memory: _MemoryUnit) -> None:
        self._nbytes += memory.nbytes
        self._dictionaries |= memory.dictionaries
        self._uses.update(memory.dictionaries.keys())

    def _release(self, memory: _MemoryUnit) -> None:
        self._nbytes -= memory.nbytes
        for address in memory.dictionaries:
            self._uses[address] -= 1
            if not self._uses[address]:
                del self._uses[address], self._dictionaries[address]

    def _shrink(self) -> Iterator[tuple[int, Batch]]:
        """Yield the largest partitions until the others need at most half of the memory, and copy the rows of the others.

        The copies refer to the same dictionaries as the pieces.
        """
        sizes = [sum(_bytes_without_dictionaries(p) for p, _ in waiting) for waiting in self._waiting]
        nbytes = sum(sizes)
        for target in sorted(range(len(sizes)), key=lambda target: -sizes[target]):
            if 2 * (nbytes + self._dictionary_bytes) <= self._max_bytes:
                break
            nbytes -= sizes[target]
            if self._waiting[target]:
                yield target, self.remove(target)
        for target, waiting in enumerate(self._waiting):
            if waiting:
                dictionaries = {k: v for piece, _ in waiting for k, v in _dictionaries(piece).items()}
                copies = _MemoryUnit(sizes[target], dictionaries, len(waiting))
                self._waiting[target] = [(_copy(piece), copies) for piece, _ in waiting]
                self._hold(copies)
                self._forget(waiting)

    def _forget(self, pieces: Iterable[tuple[Batch, _MemoryUnit]]) -> None:
        """Subtract these pieces from their units, and release the units that no other piece keeps in memory."""
        for _, memory in pieces:
            memory.pieces -= 1
            if not memory.pieces:
                self._release(memory)


def _dictionaries(batch: Batch) -> dict[int, int]:
    """Return the bytes of each dictionary of a batch by its address, so that a shared dictionary is counted once."""
    dictionaries = (c.dictionary for c in batch.columns if pa.types.is_dictionary(c.type))
    addresses = ((d, [b.address for b in d.buffers() if b is not None]) for d in dictionaries)
    return {of_buffers[0]: d.nbytes for d, of_buffers in addresses if of_buffers}


def _bytes_without_dictionaries(batch: Batch) -> int:
    encoded = (c.dictionary.nbytes for c in batch.columns if pa.types.is_dictionary(c.type))
    return int(batch.nbytes - sum(encoded))


def _copy(batch: Batch) -> Batch:
    return batch.take(pa.array(np.arange(batch.num_rows)))
