"""Argument values with the edges that break kernels, by type."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal

import numpy as np

from kquery_spark.types import names as t
from tests.functions.parity import Arg

_RNG = random.Random(20)


def days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a proleptic Gregorian date (any year)."""
    return int(
        np.datetime64(
            f"{year:+05d}-{month:02d}-{day:02d}"
            if year > 9999 or year < 0
            else f"{year:04d}-{month:02d}-{day:02d}",
            "D",
        ).astype(np.int64)
    )


def micros(text: str) -> int:
    """Microseconds since the epoch of a UTC timestamp."""
    if "." in text:  # Python 3.10 takes three or six decimals
        text += "0" * (6 - len(text.partition(".")[2]))
    moment = dt.datetime.fromisoformat(text).replace(tzinfo=dt.timezone.utc) - dt.datetime(
        1970, 1, 1, tzinfo=dt.timezone.utc
    )
    return (moment.days * 86400 + moment.seconds) * 1_000_000 + moment.microseconds


BOOLS = Arg(t.BOOL, (True, False))
BYTES = Arg(t.BYTE, (0, 1, -1, 7, 127, -128))
SHORTS = Arg(t.SHORT, (0, 1, -1, 100, 32767, -32768))
INTS = Arg(t.INT, (0, 1, -1, 2, 5, -3, 12, 100, 255, 256, 65535, 1000003, 2**31 - 1, -(2**31)))
LONGS = Arg(t.LONG, (0, 1, -1, 3, 25, 250, -999, 2**31, -(2**31) - 1, 10**15, 2**53 + 1, 2**63 - 1, -(2**63)))
COUNTS = Arg(t.INT, (0, 1, -1, 2, 3, -2, 5, 9, -30, 2**31 - 1, -(2**31)))
SMALL = Arg(t.INT, (0, 1, -1, 2, 3, 6, -4))
_FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 0.3, 123.456, -7.25, 99.995, 1e-3, 9.99e-4, 1e7, 9999999.0,
    1.2345678e8, 1e15, 123456789012.5, 1e18, 1e20, -1e20, 1e22, 1e23, 1e-10, 3.0e-5, math.pi, math.e, 2.675, 1.005, 0.145,
    2147483647.0, 2147483648.5, -2147483648.9, 9.223372036854775e18, 9.223372036854776e18, -9.223372036854776e18,
    0.49999999999999994, 4503599627370497.5, 9007199254740993.0, 255.0, 256.0, 127.9, 128.0, -128.9, 32767.5, 700.0, -745.0,
)  # fmt: skip
DOUBLES = Arg(
    t.DOUBLE,
    (*_FLOATS, math.nan, math.inf, -math.inf, 1.7976931348623157e+308, -1.7976931348623157e+308, 5e-324, 2.2250738585072014e-308, *tuple(_RNG.uniform(-1000, 1000) for _ in range(20)), *tuple(round(_RNG.uniform(-1000, 1000), 2) for _ in range(20))),
)  # fmt: skip
# Java 17 and 21 print different digits for these, so the engine refuses to turn them into text or decimals
JVM_DEPENDENT = (1e23, 9.223372036854775e18, 9.223372036854776e18, -9.223372036854776e18)
PRINTED_DOUBLES = Arg(t.DOUBLE, tuple(x for x in DOUBLES.values if x not in JVM_DEPENDENT))
FLOATS = Arg(
    t.FLOAT,
    tuple(
        float(np.float32(x))
        for x in (*_FLOATS, math.nan, math.inf, -math.inf, 3.4028235e38, 1.4e-45, 1.17549435e-38)
    ),
)
PRINTED_FLOATS = Arg(
    t.FLOAT,
    tuple(x for x in FLOATS.values if x == 0 or (abs(x) > 1.2e-38 and not 2.0**25 < abs(x) < math.inf)),
)
SHORT_DOUBLES = Arg(
    t.DOUBLE, (0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 0.5, 3.7, 1e300, math.nan, math.inf, -math.inf)
)


# -2^63 as the digits of a decimal, which have no absolute value in int64
LOWEST = Arg(t.decimal(19, 2), (Decimal("-92233720368547758.08"),), nulls=False)
LOWEST38 = Arg(t.decimal(38, 38), (Decimal("-0.00000000000000000009223372036854775808"),), nulls=False)


def decimals(precision: int, scale: int) -> Arg:
    """All digits, both signs, ties, one ulp, zero."""
    unit = Decimal(1).scaleb(-scale)
    top = (10**precision - 1) * unit
    values = {Decimal(0), unit, -unit, top, -top, 5 * unit, -5 * unit, 15 * unit, 25 * unit, -25 * unit}
    values |= {
        Decimal(x).quantize(unit)
        for x in ("1", "-1", "2.5", "-2.5", "0.05", "127", "-129")
        if abs(Decimal(x)) < top
    }
    for _ in range(12):
        values.add(
            _RNG.randrange(-(10 ** _RNG.randint(1, precision)) + 1, 10 ** _RNG.randint(1, precision)) * unit
        )
    kept = []
    import decimal

    with decimal.localcontext(decimal.Context(prec=60)):
        for v in values:
            q = v.quantize(unit)
            if abs(q) <= top:
                kept.append(q)
    return Arg(t.decimal(precision, scale), tuple(sorted(kept)))


def _decimals(precision: int, scale: int) -> Arg:
    import decimal

    with decimal.localcontext(decimal.Context(prec=80)):
        return decimals(precision, scale)


DEC = _decimals(7, 2)
DEC12 = _decimals(12, 3)
DEC18 = _decimals(18, 0)
DEC18_6 = _decimals(18, 6)
DEC20 = _decimals(20, 10)
DEC38 = _decimals(38, 10)
DEC38_0 = _decimals(38, 0)
DEC38_38 = _decimals(38, 38)
DEC5_5 = _decimals(5, 5)
DECIMALS = (DEC, DEC12, DEC18, DEC18_6, DEC20, DEC38, DEC38_0, DEC38_38, DEC5_5)

STRINGS = Arg(
    t.STRING,
    (
        "", " ", "a", "abc", "ABC", "aBc dEf", "  padded  ", "\ttab\n", "a,b,,c,", "www.apache.org", "x=1;y=2", "%", "_", "a%b_c", "\\",
        "a\\b", "'quoted'", "héllo wörld", "ÉCOLE", "straße", "İstanbul", "ΟΔΥΣΣΕΥΣ", "ǆabc", "日本語テキスト", "𝄞 clef", "😀😃 ok", "e\u0301",
        "ﬁne", "aaaa", "abab", "banana", "aXbXc", "0", "12", "-7", "foo bar  baz", "line1\nline2", "\x00nul", "a\u00a0b", "z" * 40,
        "x" * 300, "The quick brown fox", "foo@bar.com", "2020-01-01", "tEST-case o'neil", "a.b.c.d", "...", "ab" * 9,
    ),
)  # fmt: skip
WORDS = Arg(t.STRING, ("", "a", "b", "ab", "aa", ".", "X", "é", "😀", "日", "an", " "))
BINARIES = Arg(
    t.BINARY, (b"", b"a", b"abc", b"\x00\xff\x80", b"hello world", bytes(range(256)), b"\xe6\x97\xa5")
)

DATES = Arg(
    t.DATE,
    tuple(
        days(*d)
        for d in (
            (1970, 1, 1), (1969, 12, 31), (2000, 2, 29), (1900, 2, 28), (1900, 3, 1), (2020, 12, 31), (2021, 1, 1), (2021, 1, 3), (2021, 1, 4),
            (1, 1, 1), (9999, 12, 31), (1582, 10, 4), (1582, 10, 15), (2024, 2, 29), (2023, 2, 28), (1999, 12, 31), (2016, 1, 3), (2015, 12, 28),
            (1992, 1, 31), (1998, 9, 2), (2008, 12, 29), (2010, 1, 3), (2038, 1, 19), (1600, 2, 29), (1700, 3, 31), (4, 2, 29), (2023, 10, 30),
        )
    ),
)  # fmt: skip
WIDE_DATES = Arg(
    t.DATE, (*DATES.values, days(10000, 1, 1), days(-1, 6, 15), days(12345, 2, 3), days(0, 2, 29), -719529)
)
_MOMENTS = tuple(
    micros(x)
    for x in (
        "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2020-02-29 12:34:56.123456", "2021-03-14 09:59:59.999999",
        "2021-03-14 10:00:00", "2021-03-14 10:30:00", "2021-11-07 08:30:00", "2021-11-07 09:00:00", "2021-11-07 09:30:00", "0001-01-03 00:00:00.000001",
        "9999-12-29 23:59:59.999999", "1582-10-10 10:10:10", "1883-11-18 19:52:57", "1883-11-18 20:00:00", "1900-01-01 00:00:00", "2000-01-01 00:00:00.1",
        "1999-12-31 23:59:59.9", "2038-01-19 03:14:08", "2100-06-15 12:00:00.00025", "2050-07-04 01:02:03.000004", "1942-02-09 10:30:00", "2024-12-31 23:00:00",
        "2015-05-05 05:05:05.05", "1918-03-31 10:00:00", "1948-03-14 10:01:00", "2400-07-01 10:00:00",
    )
)  # fmt: skip
TIMESTAMPS = Arg(t.timestamp("UTC"), _MOMENTS)
NTZ = Arg(t.TIMESTAMP_NTZ, _MOMENTS)
INTERVALS = Arg(
    t.DAY_TIME,
    (
        0,
        1,
        -1,
        86_400_000_000,
        -86_400_000_000,
        3_600_000_000,
        5_400_000_001,
        93_784_000_000,
        31 * 86_400_000_000,
    ),
)
