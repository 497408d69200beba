"""Compiles ``thrift_scan.scan``, the parser of Parquet footers."""

from __future__ import annotations

import numba

from kquery_spark.kernels import thrift_scan

_Bytes = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_Layout = numba.types.Array(numba.int64, 1, "C", readonly=True)
_Numbers = numba.int64[::1]
_Count = numba.int64

scan = numba.njit(
    _Count(_Bytes, _Layout, _Layout, _Layout, _Layout, _Numbers, _Numbers, _Count, _Numbers, _Count),
    cache=True,
    nogil=True,
)(thrift_scan.scan)
