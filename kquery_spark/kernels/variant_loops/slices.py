"""Copies slices of bytes one after the other."""

from __future__ import annotations

from typing import Any

import numba

from kquery_spark.kernels.variant_loops.layout import Bytes, Numbers, Raw


@numba.njit(numba.void(Raw, Numbers, Numbers, Numbers, Bytes), cache=True, nogil=True)
def copy_slices(raw: Any, starts: Any, sizes: Any, ends: Any, out: Any) -> None:
    """Copy ``sizes`` bytes from each start on; ``ends`` receives their starts in ``out``, and the end of the last slice."""
    done = 0
    for row in range(len(starts)):
        ends[row] = done
        start = starts[row]
        for i in range(sizes[row]):
            out[done + i] = raw[start + i]
        done += sizes[row]
    ends[len(starts)] = done
