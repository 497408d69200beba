"""A column as codes of its distinct values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.types.vector import Int64s, slots

Codes = npt.NDArray[np.uint16]
_MIN_ROWS_PER_SELECTED_ROW = (
    12  # packed codes are decoded row by row for at most one row in so many; for more rows all are decoded
)


class PackedCodes(NamedTuple):
    """The codes of a column as a file packs them, page by page: what ``kernels.codes`` takes first."""

    data: npt.NDArray[np.uint8]
    starts: Int64s
    counts: Int64s
    levels: Int64s


@dataclass(frozen=True)
class CodedColumn:
    """The values of a column's rows by their numbers among ``values``, which may hold one twice, or one of no row.

    values: in the form the engine has columns in; the last one is NULL. nulls: whether there may be a row of it. rows: how
    many there are. unpack: returns the bit-packed codes, decompressed; None where the kernels cannot read them. look_up:
    returns the codes by decoding the values, or raises for a corrupt chunk.
    """

    values: pa.Array
    nulls: bool
    rows: int
    kernels: ModuleType
    unpack: Callable[[], PackedCodes | None]
    look_up: Callable[[], Codes]

    def rows_where(self, selected: npt.NDArray[np.bool_], rows: Int64s | None = None) -> Int64s:
        """The numbers of the rows, or of some of them, whose value is selected; ``selected`` has a flag for each value."""
        if not selected.any():
            return np.zeros(0, np.int64)
        if rows is not None and self._are_few(rows):
            return rows[selected.take(self._codes_of(rows))]
        flags = selected.view(np.uint8)
        # one item longer than the most hits: the kernels write the next item before they know that it is a hit
        out = np.empty((self.rows if rows is None else len(rows)) + 1, np.int64)
        if rows is not None:
            return out[: self.kernels.matching_of(self._codes, flags, rows, out)]
        count = (
            -1 if self._are_decoded or self._packed is None else self.kernels.where(*self._packed, flags, out)
        )
        return out[: count if count >= 0 else self.kernels.matching(self._codes, flags, out)]

    def take(self, rows: Int64s | None) -> pa.Array:
        """The values of some rows in rising order (None: of all)."""
        codes = self._codes if rows is None else self._codes_of(rows)
        dtype = self.values.type
        if dtype.bit_width > 64:
            return self.values.take(pa.array(codes))
        data = pa.py_buffer(slots(self.values).take(codes))
        valid = codes != len(self.values) - 1  # from the rows, as ``nulls`` comes from statistics
        if valid.all():
            return pa.Array.from_buffers(dtype, len(codes), [None, data], 0)
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(dtype, len(codes), [bitmap, data])

    def _codes_of(self, rows: Int64s) -> Codes:
        if self._are_few(rows) and self._packed is not None:
            out = np.empty(len(rows), np.uint16)
            if self.kernels.codes_of(*self._packed, len(self.values) - 1, rows, out) == 0:
                return out
        return self._codes.take(rows)

    def _are_few(self, rows: Int64s) -> bool:
        """True if decoding only these rows' codes is cheaper than decoding all, which has not happened yet."""
        return not self._are_decoded and len(rows) * _MIN_ROWS_PER_SELECTED_ROW <= self.rows

    @property
    def _are_decoded(self) -> bool:
        return "_codes" in self.__dict__

    @cached_property
    def _packed(self) -> PackedCodes | None:
        return self.unpack()

    @cached_property
    def _codes(self) -> Codes:
        """One code a row; decoded at first use."""
        if self._packed is not None:
            out = np.empty(self.rows, np.uint16)
            if self.kernels.codes(*self._packed, len(self.values) - 1, out) >= 0:
                return out
        return self.look_up()
