"""The Levenshtein distance of two sequences of characters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kquery_spark.run_control import check_run

_MIN_ARRAY_LENGTH = 32
"""From this length on, numpy is faster than a loop of Python."""


def edit_distance(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the number of insertions, deletions and replacements that turn one sequence of integers into the other.

    The dynamic program computes the matrix of the distances of all prefixes row by row. The longer sequence becomes the row.
    """
    if len(left) > len(right):
        left, right = right, left
    return _by_rows(left, right) if len(right) >= _MIN_ARRAY_LENGTH else _by_cells(left, right)


def _by_cells(left: Sequence[int], right: Sequence[int]) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        corner, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (a != b))
    return row[-1]


def _by_rows(left: Sequence[int], right: Sequence[int]) -> int:
    """Compute each row of the matrix with numpy. Raises RunStopped if the run is cancelled, because this can take seconds.

    A cell depends on the one before it in the row: ``row[j] = min(above[j], row[j - 1] + 1)``, where ``above`` comes from
    the previous row. So ``row[j] - j`` is the minimum of ``above[k] - k`` for all ``k`` up to ``j``.
    """
    targets = np.asarray(right, np.int64)
    positions = np.arange(len(right) + 1)
    row = positions
    for i, a in enumerate(left, 1):
        check_run()
        above = row + 1
        np.minimum(above[1:], row[:-1] + (targets != a), out=above[1:])
        above[0] = i
        row = np.minimum.accumulate(above - positions) + positions
    return int(row[-1])
