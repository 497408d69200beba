"""Groups rows by several key columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kquery_spark.physical.grouping.dependent_keys import (
    are_determined,
    comparable_values,
    is_comparing_cheaper,
)
from kquery_spark.physical.grouping.groups import Codes, Groups, number_groups
from kquery_spark.physical.grouping.key_codes import encode, pack
from kquery_spark.types.vector import Vector

# For fewer rows, keys are encoded without testing whether other keys determine them.
_MIN_COMPARED_ROWS = 1024


def group_rows(keys: Sequence[Vector], num_rows: int) -> Groups:
    """Number the groups of the key columns. Without keys there is exactly one group, even for no rows.

    Strings that the other keys determine are compared instead of encoded (``dependent_keys``).
    """
    if not keys:
        return Groups(np.zeros(num_rows, np.int64), 1, np.zeros(1, np.int64))
    compared = [comparable_values(k, num_rows) for k in keys]
    encoded = [encode(k) for k, values in zip(keys, compared, strict=True) if values is None]
    others = [values for values in compared if values is not None]
    if others and encoded and num_rows >= _MIN_COMPARED_ROWS:
        codes = pack(encoded, num_rows)
        encoded = [codes]
        if is_comparing_cheaper(codes.cardinality, num_rows):
            groups = number_groups(codes)
            if are_determined(others, groups.ids, groups.first_rows):
                return groups
            encoded = [Codes(groups.ids, groups.count)]
    encoded += [encode(k) for k, values in zip(keys, compared, strict=True) if values is not None]
    return number_groups(pack(encoded, num_rows))
