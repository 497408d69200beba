"""A dictionary-encoded column of a split: its dictionary, and lazily decoded dictionary indices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.cached_property import cached_property
from kquery_spark.types.vector import Flags, Int64s, slots

Indices = npt.NDArray[np.uint16]
MAX_DICTIONARY_VALUES = (1 << 16) - 1
"""The largest index. A dictionary has at most this many values, because the index after the last value means NULL."""
# Indices are decoded one by one if at most one row in 12 is selected; for more rows, decoding all of them is faster.
_MIN_ROWS_PER_SELECTED_ROW = 12


class PackedIndices(NamedTuple):
    """The bit-packed indices of a column chunk: the first arguments of ``kernels.decode_indices``.

    data, pages: the decompressed bytes and the table of the data pages. has_levels: whether the column can be NULL.
    """

    data: npt.NDArray[np.uint8]
    pages: Int64s
    has_levels: bool


@dataclass(frozen=True)
class DictionaryColumn:
    """Dictionary-encoded column. The index of NULL is ``len(values)``.

    values: the dictionary in the engine's types; it may contain duplicates and unused entries.
    may_have_nulls: False if statistics show that no row is NULL. Statistics may be wrong, so ``take`` does not rely on it.
    rows: the number of rows.
    kernels: the package of compiled loops.
    unpack: returns the decompressed, bit-packed indices, or None if the kernels cannot read them.
    look_up: returns the indices by decoding the values with pyarrow; raises an error for a corrupt chunk.
    """

    values: pa.Array
    may_have_nulls: bool
    rows: int
    kernels: ModuleType
    unpack: Callable[[], PackedIndices | None]
    look_up: Callable[[], Indices]

    def flags(self, passing: Flags, null_passes: bool) -> Flags:
        """Return flags for ``rows_where``: ``passing``, which has one for each entry of the dictionary, and one for NULL."""
        flags = np.empty(len(self.values) + 1, np.bool_)
        flags[:-1], flags[-1] = passing, null_passes
        return flags

    def rows_where(self, selected: Flags, rows: Int64s | None = None) -> Int64s:
        """Return the positions among ``rows`` (None: all) whose value is selected. selected: as from ``flags``."""
        if len(selected) != len(self.values) + 1:
            raise ValueError("selected needs a flag for each entry of the dictionary and one for NULL")
        if rows is not None and self._are_few(rows):
            return rows[selected.take(self._selected_indices(rows))]
        flags = selected.view(np.uint8)
        # One item more than there can be hits: the kernels store each position, and advance only if it is a hit.
        out = np.empty((self.rows if rows is None else len(rows)) + 1, np.int64)
        if rows is not None:
            return out[: self.kernels.filter_selected_rows(self._indices, flags, rows, out)]
        count = -1
        if not self._are_decoded and self._packed is not None:
            count = self.kernels.filter_chunk(*self._packed, flags, out)
        return out[: count if count >= 0 else self.kernels.filter_indices(self._indices, flags, out)]

    def take(self, rows: Int64s | None) -> pa.Array:
        """Return the values of rows, given by position in rising order; None for all rows."""
        indices = self._indices if rows is None else self._selected_indices(rows)
        dtype = self.values.type
        # Computed from the rows, because ``may_have_nulls`` is only a hint from statistics.
        is_null = indices == len(self.values)
        null_count = int(np.count_nonzero(is_null))
        if dtype.bit_width > 64 or len(self.values) == 0:
            return (self.values_and_null if null_count else self.values).take(pa.array(indices))
        # The index of NULL is clipped to the last value.
        data = pa.py_buffer(slots(self.values).take(indices, mode="clip"))
        bitmap = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if null_count else None
        return pa.Array.from_buffers(dtype, len(indices), [bitmap, data], null_count)

    @cached_property
    def values_and_null(self) -> pa.Array:
        """The dictionary, followed by NULL."""
        return pa.concat_arrays([self.values, pa.nulls(1, self.values.type)])

    def _selected_indices(self, rows: Int64s) -> Indices:
        if self._are_few(rows) and self._packed is not None:
            out = np.empty(len(rows), np.uint16)
            if self.kernels.decode_selected_indices(*self._packed, len(self.values), rows, out) == 0:
                return out
        return self._indices.take(rows)

    def _are_few(self, rows: Int64s) -> bool:
        """True if the indices are not decoded yet, and decoding only those of these rows is cheaper than decoding all."""
        return not self._are_decoded and len(rows) * _MIN_ROWS_PER_SELECTED_ROW <= self.rows

    @property
    def _are_decoded(self) -> bool:
        return "_indices" in self.__dict__

    @cached_property
    def _packed(self) -> PackedIndices | None:
        return self.unpack()

    @cached_property
    def _indices(self) -> Indices:
        """One index per row, decoded at first use."""
        if self._packed is not None:
            out = np.empty(self.rows, np.uint16)
            if self.kernels.decode_indices(*self._packed, len(self.values), out) >= 0:
                return out
        return self.look_up()
