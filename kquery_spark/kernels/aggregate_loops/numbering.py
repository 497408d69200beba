"""Numbers rows by their codes: rows with equal codes belong to the same group."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int32, int64, uint16

from kquery_spark.kernels.aggregate_loops.sums import LANES, readonly_array

UNSEEN = 65_535
"""Marks a code that has not occurred yet, so no group can have this number."""

_Outputs = (uint16[::1], uint16[::1], int64[::1], int64[:, ::1])


@numba.njit([int64(readonly_array(dtype), *_Outputs) for dtype in (int32, int64)], cache=True, nogil=True)
def number_codes(codes: Any, numbers: Any, ids: Any, first_rows: Any, sizes: Any) -> Any:
    """Number the groups of equal codes in the order of their first rows.

    numbers: ``UNSEEN`` for each possible code; receives the group of each code that occurs. It must be longer than the
    largest code; this is not checked. ids: receives the group of each row. first_rows: receives the first row of each group;
    its length is the largest number of groups. sizes: zeros; the sum of its ``LANES`` rows will be the number of rows of
    each group (``sums.py`` explains the lanes).

    Returns the number of groups, or -1 if there are more than ``len(first_rows)``.
    """
    count = int64(0)
    for i in range(len(codes)):
        group = numbers[codes[i]]
        if group == UNSEEN:
            if count == len(first_rows):
                return int64(-1)
            group = np.uint16(count)
            numbers[codes[i]] = group
            first_rows[count] = i
            count += 1
        ids[i] = group
        sizes[i % LANES, group] += 1
    return count
