"""Pieces of bytes copied one behind the other."""

from __future__ import annotations

from typing import Any

import numba

from kquery_spark.kernels.variant_loops.layout import Bytes, Numbers, Raw


@numba.njit(numba.void(Raw, Numbers, Numbers, Numbers, Bytes), cache=True, nogil=True)
def copy_slices(raw: Any, starts: Any, sizes: Any, ends: Any, out: Any) -> None:
    """Copy the bytes from each start on; ``ends`` has where they begin in ``out``, and the end of the last ones."""
    done = 0
    for row in range(len(starts)):
        ends[row] = done
        start = starts[row]
        for i in range(sizes[row]):
            out[done + i] = raw[start + i]
        done += sizes[row]
    ends[len(starts)] = done
