"""The scan of ``thrift_scan.py``, compiled."""

from __future__ import annotations

import numba

from kquery_spark.kernels import thrift_scan

_Bytes = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Numbers = numba.types.Array(numba.int64, 1, "C", readonly=True)
_Table = numba.int64[:, ::1]

scan = numba.njit(
    numba.int64(_Bytes, _Numbers, _Numbers, _Numbers, _Numbers, _Numbers, numba.int64[::1], _Table, _Table),
    cache=True,
    nogil=True,
)(thrift_scan.scan)
