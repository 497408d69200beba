"""Keys that other keys determine: ``GROUP BY c_custkey, c_name, c_address`` has one name and address per customer key.

Encoding long strings takes most of the time of such a grouping. So the rows are first grouped by the other keys. Then the
strings of each row are compared with those of the first row of its group. If they never differ, the groups are complete.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kquery_spark.types import names as t
from kquery_spark.types.vector import Int64s, Vector

# This number of rows is compared first. If any rows differ, some of these usually do.
_SAMPLE_ROWS = 1024
_BLOCK_ROWS = 16_384  # the number of strings that are gathered and compared at once


def comparable_values(key: Vector, num_rows: int) -> pa.Array | None:
    """Return values that are equal only if Spark groups their rows together; None if encoding the key takes little time.

    The indices of a dictionary may differ for equal values. Then the key counts as different.
    """
    if key.is_dictionary:
        return key.data.indices if len(key.data.dictionary) > num_rows // 8 else None
    return key.data if key.dtype in (t.STRING, t.BINARY) else None


def is_comparing_cheaper(groups: int, num_rows: int) -> bool:
    """Return False if more than three quarters of the rows would have to be compared, since encoding then takes less time.

    groups: the number of groups of the other keys, or an upper bound.
    """
    return 4 * groups >= num_rows


def are_determined(columns: Sequence[pa.Array], ids: Int64s, first_rows: Int64s) -> bool:
    """Return whether each column has a single value in each group. ids: the group of each row.

    Returns False without comparing any rows if there are too few groups (``is_comparing_cheaper``).
    """
    if not is_comparing_cheaper(len(first_rows), len(ids)):
        return False
    firsts = first_rows.take(ids)
    rows = np.flatnonzero(firsts != np.arange(len(ids)))
    firsts = firsts.take(rows)
    # Once the lengths are known to be equal, the gathered first strings have at most the bytes of the column, so their
    # offsets cannot overflow.
    return all(_have_equal_numbers(column, rows, firsts) for column in columns) and all(
        _have_equal_bytes(column, rows, firsts) for column in columns if not pa.types.is_integer(column.type)
    )


def _have_equal_numbers(column: pa.Array, rows: Int64s, others: Int64s) -> bool:
    """Return whether the integers, or the lengths of the strings, are equal in both rows of each pair; NULL equals NULL."""
    numbers = column if pa.types.is_integer(column.type) else pc.binary_length(column)
    values = numbers.cast(t.LONG).fill_null(-1).to_numpy(zero_copy_only=False)
    sample = slice(_SAMPLE_ROWS)
    return all(
        np.array_equal(values.take(left), values.take(right))
        for left, right in ((rows[sample], others[sample]), (rows, others))
    )


def _have_equal_bytes(column: pa.Array, rows: Int64s, others: Int64s) -> bool:
    """Return whether the strings are equal in both rows of each pair. The rows of a pair are both NULL or neither."""
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        equal = pc.equal(column.take(pa.array(rows[block])), column.take(pa.array(others[block])))
        if not pc.all(equal, min_count=0).as_py():
            return False
    return True
