"""Compiles the insertion of rows into bounded heaps."""

from __future__ import annotations

import numba
from numba import void

from kquery_spark.kernels import bounded_heaps

_Rows = numba.types.Array(numba.int64, 1, "C", readonly=True)
_Items = numba.int64[::1]

insert = numba.njit(void(_Rows, _Rows, _Rows, _Rows, _Items, _Items, _Items), cache=True, nogil=True)(
    bounded_heaps.insert
)
