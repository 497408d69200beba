"""Encodings, numbers formatted as strings, and parts of strings."""

from __future__ import annotations

from decimal import Decimal

from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.strings import c
from tests.functions.parity import Arg, Case, integer, text

LONG_BINARIES = Arg(t.BINARY, tuple(bytes(range(n)) for n in (0, 1, 2, 3, 56, 57, 58, 114, 115, 200)))
CODED = Arg(
    t.STRING,
    (
        "", "YQ==", "YWI=", "YWJj", "YW\r\nJj", "Y Q = =", "YQ", "YWI", "a", "YQ=", "YQ==x", "YQ==\n", "=", "====", "YWJj=", "Y*W-J_j", "+/+/", "é", "YR==",
        "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo=", "YQ=x=", "YQ==YQ==", "YQ===", "YWI==", "YQ== =", "YQ===Y", "YQ==é", "YQ==!=-",
    ),
)  # fmt: skip
NAMES = Arg(
    t.STRING,
    ("", "Miller", "miller", "Ashcraft", "Ashcroft", "Tymczak", "Pfister", "Honeyman", "a", "Éa", "1a", " x", "O'Hara", "bbb", "Whittle", "Jackson", "aé-bw"),
)  # fmt: skip
ROUNDED = Arg(
    t.DOUBLE,
    (
        0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 0.125, 0.375, 2.675, 1.005, -0.001, 0.1, 1234567.891, -1234567.895, 999999.9999, 1e-7, 123456789012.5, 0.045, 8.345,
        1e14, float("nan"), float("inf"), float("-inf"), 3.0, 4.35, 1.0e-10,
    ),
)  # fmt: skip
DIGITS = Arg(t.INT, (0, 1, 2, 3, 6, -1))
PLACES = Arg(t.INT, (1, 2, 3, -1, -2, -9, 9, 2**31 - 1, -(2**31), 0))
PARTS = Arg(t.STRING, ("a,b,c", "", ",", "abc", ",a,,b,", "é,ü"))
CASES: list[Case] = [
    c("base64", LONG_BINARIES), c("base64", v.BINARIES), c("unbase64", CODED), c("soundex", NAMES), c("bin", v.LONGS),
    c("format_number", ROUNDED, DIGITS), c("format_number", v.LONGS, DIGITS), c("format_number", v.INTS, integer(2)), c("format_number", v.DEC, DIGITS),
    c("format_number", v.DEC12, integer(1)), c("format_number", Arg(t.FLOAT, (0.0, -0.0, 1.5, 0.125, 1.25e6, 3.25)), DIGITS), c("format_number", v.SHORTS, integer(0)),
    c("format_number", v.DEC38_0, DIGITS),
    c("overlay", v.STRINGS, v.WORDS, PLACES), c("overlay", v.STRINGS, v.WORDS, v.SMALL, v.SMALL), c("overlay", v.STRINGS, text("_"), integer(2), sql="overlay({0} placing {1} from {2})"),
    c("elt", v.SMALL, v.STRINGS, v.WORDS), c("elt", v.SMALL, v.STRINGS, v.WORDS, ansi=False), c("elt", v.SMALL, v.BINARIES, v.BINARIES, ansi=False), c("elt", integer(2), text("x"), v.WORDS),
    c("split_part", PARTS, text(","), Arg(t.INT, (1, 2, 3, -1, -2, -5, 9, 0))), c("split_part", PARTS, Arg(t.STRING, (",", "", "b", "ü")), integer(1)),
]  # fmt: skip
NUMBERS = Arg(
    t.STRING,
    (
        "", " ", "0", "7", "12", "123", "1234", "1,234", "12,34", "1.5", "1.50", "1.234", ".5", "5.", ".", "-1", "+1", "-", "1-", "$1", "$", "<1>", "<1", "1>", "<>", " 1 2", "1 ",
        "\t3", "-12.5", "$-1", "-$1.5", "1,2,3", ",1", "1,", "x", "1x", "00012", "9,999,999.99", "99999999999999999999.9", "1..2", "--1",
    ),
)  # fmt: skip
NUMBER_FORMATS = (
    "9", "999", "000", "9.9", "9,999", "0,000", "999,999.99", "9G999D99", "S999", "999S", "MI99", "99MI", "99PR", "9.9PR", "$99", "S$9.9", ".99", "09.90", "9,0,9", "9999999999999999999999.9", "99.", "S9.", "99.MI", "$0,009.99MI",
)  # fmt: skip
WRITTEN = Arg(
    t.decimal(10, 3),
    tuple(map(Decimal, ("0", "0.5", "-0.5", "1", "-1", "12.3", "-12.34", "999", "1234.5", "-1234.567", "999999.999", "0.001", "100", "0.05"))),
)  # fmt: skip
CASES += [
    c(name, NUMBERS, text(f)) for f in NUMBER_FORMATS if f != ".99" for name in ("to_number", "try_to_number")
]
CASES += [c("to_char", x, text(f)) for f in NUMBER_FORMATS for x in (WRITTEN, v.DEC38_38)]
