"""COALESCE and its kin, GREATEST and LEAST, over every flat type."""

from __future__ import annotations

from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.strings import FLAT, c
from tests.functions.parity import Case, integer, text

CASES: list[Case] = []
for flat in FLAT:
    CASES += [c("coalesce", flat, flat), c("nullif", flat, flat)]
    if flat.dtype != t.BOOL:
        CASES += [c("greatest", flat, flat, flat), c("least", flat, flat)]
CASES += [
    c("coalesce", v.STRINGS, text("none")), c("coalesce", v.INTS, v.INTS, integer(3)), c("coalesce", v.DEC, v.DEC, v.DEC), c("nullif", v.INTS, integer(1)),
    c("nullif", v.STRINGS, text("a")), c("nullif", v.INTS, v.LONGS), c("nullif", v.DEC, v.DEC12), c("nanvl", v.DOUBLES, v.SHORT_DOUBLES), c("nanvl", v.FLOATS, v.FLOATS),
    c("greatest", v.BOOLS, v.BOOLS), c("least", v.BOOLS, v.BOOLS), c("greatest", v.INTS, integer(7)),
]  # fmt: skip
