"""Replaces single bytes of strings by their escapes, in one pass over all bytes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.kernels.text import Bytes, build, layout, null_mask
from kquery_spark.types.sizes import check_string_bytes, reserve_rows
from kquery_spark.types.vector import Int64s

_BLOCK_BYTES = 1 << 18  # of the strings; intermediate results take up to 40 times as much


class Escapes:
    """A table of escapes. Each of them replaces one ASCII character by one or more ASCII characters."""

    def __init__(self, escapes: Mapping[str, str]) -> None:
        self._longest = max(map(len, escapes.values()))
        self._added = np.zeros(256, np.uint8)  # by how many bytes the escape of a byte is longer
        self._bytes = np.zeros((256, self._longest), np.uint8)
        for character, escape in escapes.items():
            encoded = escape.encode()
            self._added[ord(character)] = len(encoded) - 1
            self._bytes[ord(character), : len(encoded)] = np.frombuffer(encoded, np.uint8)

    def apply(self, strings: pa.Array) -> pa.Array:
        """Replace all characters of a string array that have an escape. Raises BatchTooLarge for more than 2 GiB."""
        offsets, raw = layout(strings)
        data = raw[offsets[0] : offsets[-1]]
        bounds = offsets - offsets[0]
        new_bounds = bounds.copy()
        blocks = [data[at : at + _BLOCK_BYTES] for at in range(0, len(data), _BLOCK_BYTES)]
        added = [int(self._added[block].sum(dtype=np.int64)) for block in blocks]
        if not any(added):
            return strings
        size = len(data) + sum(added)
        check_string_bytes(size, "escapes in the strings of a batch")
        reserve_rows(size)
        out = np.empty(size, np.uint8)
        start = position = 0
        for block, growth in zip(blocks, added, strict=True):
            rows = slice(*np.searchsorted(bounds, [position, position + len(block)]))
            end = start + len(block) + growth
            places, shifts = self._write(block, out[start:end])
            # a string moves by the bytes that all escapes before it add, in earlier blocks and in this one
            new_bounds[rows] += start - position + shifts[np.searchsorted(places, bounds[rows] - position)]
            start, position = end, position + len(block)
        new_bounds[bounds == len(data)] = size
        return build(new_bounds, out, null_mask(strings))

    def _write(self, block: Bytes, out: Bytes) -> tuple[Int64s, Int64s]:
        """Write a block with its escapes.

        Returns the positions of the bytes that have an escape, and the number of bytes that the first 0, 1, ... of these
        escapes add.
        """
        added = self._added[block]
        places = np.flatnonzero(added)
        growth = added[places]
        shifts: npt.NDArray[np.int64] = np.zeros(len(places) + 1, np.int64)
        np.cumsum(growth, out=shifts[1:])
        out[:] = block if not len(places) else np.repeat(block, added + 1)
        begins = places + shifts[:-1]
        for k in range(self._longest):
            has_byte = growth >= k  # the escapes with more than k bytes
            out[begins[has_byte] + k] = self._bytes[block[places[has_byte]], k]
        return places, shifts
