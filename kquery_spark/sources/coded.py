"""A column as codes of its distinct values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kquery_spark.types.vector import Int64s, slots

Codes = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class CodedColumn:
    """The values of a column's rows by their numbers among ``values``, which may hold one twice, or one of no row.

    values: in the form the engine has columns in; the last one is NULL. nulls: whether there may be a row of it.
    """

    values: pa.Array
    nulls: bool
    kernels: ModuleType
    decode: Callable[[], Codes]

    @cached_property
    def codes(self) -> Codes:
        """One code a row; decoded when asked for."""
        return self.decode()

    def rows_where(self, wanted: npt.NDArray[np.bool_], rows: Int64s | None = None) -> Int64s:
        """The numbers of the rows, or of some of them, whose value is wanted; ``wanted`` says so of each value."""
        if not wanted.any():
            return np.zeros(0, np.int64)
        flags = wanted.view(np.uint8)
        # one place more than there may be hits, as the next place is written to before it is known to be a hit
        out = np.empty((len(self.codes) if rows is None else len(rows)) + 1, np.int64)
        if rows is None:
            count = self.kernels.matching(self.codes, flags, out)
        else:
            count = self.kernels.matching_of(self.codes, flags, rows, out)
        return out[:count]

    def take(self, rows: Int64s | None) -> pa.Array:
        """The values of some rows (None: of all)."""
        codes = self.codes if rows is None else self.codes.take(rows)
        dtype = self.values.type
        if dtype.bit_width > 64:
            return self.values.take(pa.array(codes))
        data = pa.py_buffer(slots(self.values).take(codes))
        valid = codes != len(self.values) - 1  # asked of the rows, as ``nulls`` is what statistics say
        if valid.all():
            return pa.Array.from_buffers(dtype, len(codes), [None, data], 0)
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(dtype, len(codes), [bitmap, data])
