"""References to values in a serialized plan, and how much of everything a message may have.

A reference is the index of a value in one of a message's tables, shifted left by four bits, and the table's number.
"""

from __future__ import annotations

VERSION = 1
MAX_BYTES = 1 << 30
# Objects inside objects; beyond this Python itself could not compare or print the plan.
MAX_DEPTH = 1000
# Objects and items of a plan written out as a tree: sharing must not make a small message a huge plan.
MAX_SIZE = 5_000_000
MAX_TOTAL = 50_000_000
MAX_DIGITS = 4000  # of an integer or a decimal

CONSTANT, STRING, INTEGER, DOUBLE, BLOB, DECIMAL, BIG, ENUM, TYPE, SCHEMA, TABLE, OBJECT = range(12)
CONSTANTS = (None, False, True)
NULL, FALSE, TRUE = (i << 4 | CONSTANT for i in range(3))
