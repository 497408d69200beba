"""Numbers that the compiled loops of ``variant_loops`` share with their callers: kinds of values, and table columns."""

from __future__ import annotations

# Kinds of the value at a path. Machines cache compiled loops that contain these numbers, so they must never change.
IS_ABSENT, IS_NULL, IS_BOOL, IS_LONG, IS_DOUBLE, IS_FLOAT, IS_DECIMAL, IS_DATE = 0, 1, 2, 3, 4, 5, 6, 7
IS_TIMESTAMP, IS_TIMESTAMP_NTZ, IS_STRING, IS_BINARY, IS_UUID, IS_OBJECT, IS_ARRAY = 8, 9, 10, 11, 12, 13, 14
IS_MALFORMED, IS_UNKNOWN = 15, 16  # IS_UNKNOWN: a type that a newer version of the format may define

# Columns of the two tables that describe the parts of shredded variants; ``variant_loops.shredded`` explains them.
VALUE_FLAGS, VALUE_AT, TYPED_KIND, TYPED_FLAGS, TYPED_AT, TYPED_SCALE, TYPED_FIELDS, TYPED_COUNT = range(8)
FIELD_NODE, FIELD_FLAGS, FIELD_NAME, FIELD_NAME_END, FIELD_ORDER = range(5)
