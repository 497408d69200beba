"""What a variant holds at a path, as the compiled loops of ``variant_loops`` say it."""

from __future__ import annotations

# Compiled loops that machines have cached know these numbers, so that only new ones may come.
IS_ABSENT, IS_NULL, IS_BOOL, IS_LONG, IS_DOUBLE, IS_FLOAT, IS_DECIMAL, IS_DATE = 0, 1, 2, 3, 4, 5, 6, 7
IS_TIMESTAMP, IS_TIMESTAMP_NTZ, IS_STRING, IS_BINARY, IS_UUID, IS_OBJECT, IS_ARRAY = 8, 9, 10, 11, 12, 13, 14
IS_MALFORMED, IS_UNKNOWN = 15, 16  # IS_UNKNOWN: a type that the format did not have when this was written

# Columns of the tables that say where the parts of shredded variants are; see ``variant_loops.shredded``.
VALUE_FLAGS, VALUE_AT, TYPED_KIND, TYPED_FLAGS, TYPED_AT, TYPED_SCALE, TYPED_FIELDS, TYPED_COUNT = range(8)
FIELD_NODE, FIELD_FLAGS, FIELD_NAME, FIELD_NAME_END, FIELD_ORDER = range(5)
