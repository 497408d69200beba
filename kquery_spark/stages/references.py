"""References to values in a serialized plan, and the limits of a message.

A reference is ``index << 4 | table``: the number of a table of the message, and the index of a value in this table. Value 5
of the table of strings (1) has the reference 81.
"""

from __future__ import annotations

VERSION = 1
MAX_BYTES = 1 << 30
# The depth of nested objects. Python could not compare or print a deeper plan.
MAX_DEPTH = 1000
# The number of objects and list items of one value, and of all values, as if nothing was shared (see ReadLimits).
MAX_SIZE = 5_000_000
MAX_TOTAL = 50_000_000
MAX_DIGITS = 4000  # of an integer or a decimal

CONSTANT, STRING, INTEGER, DOUBLE, BLOB, DECIMAL, BIG, ENUM, TYPE, SCHEMA, TABLE, OBJECT = range(12)
CONSTANTS = (None, False, True)
NULL, FALSE, TRUE = (i << 4 | CONSTANT for i in range(3))
