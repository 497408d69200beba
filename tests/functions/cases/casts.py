"""Every pair of the cast table, in ANSI, TRY and LEGACY mode."""

from __future__ import annotations

from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.parity import Arg, Case, cast_case

NUMERIC = (v.BYTES, v.SHORTS, v.INTS, v.LONGS, v.FLOATS, v.DOUBLES, *v.DECIMALS)
TARGETS = (
    t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE, t.decimal(5, 2), t.decimal(10, 0), t.decimal(18, 4), t.decimal(38, 10), t.decimal(38, 30),
    t.BOOL,
)  # fmt: skip


def _modes(source: Arg, target: object, **options: object) -> list[Case]:
    return [
        cast_case(source, target, **options),
        cast_case(source, target, mode=EvalMode.TRY, **options),
        cast_case(source, target, ansi=False, **options),
    ]


CASES: list[Case] = []
for source in (*NUMERIC, v.BOOLS):
    for target in (*TARGETS, *((t.decimal(1, 0), t.decimal(2, 2)) if source is v.BOOLS else ())):
        if source.dtype != target:
            printed = {t.FLOAT: v.PRINTED_FLOATS, t.DOUBLE: v.PRINTED_DOUBLES}.get(source.dtype, source)
            CASES += _modes(printed if t.is_decimal(target) else source, target)

NUMBER_STRINGS = Arg(
    t.STRING,
    (
        "", " ", "0", "-0", "+0", "1", "-1", "+1", " 12 ", "\t12\n", "\x7f12\x00", "12 3", "1.5", "-1.9", "1.", ".5", ".", "+", "-", "-.", "+.5", "1e3",
        "1E-3", "1e", "e3", "1e400", "-1e400", "1e-400", "127", "128", "-128", "-129", "32767", "32768", "2147483647", "2147483648", "-2147483649",
        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "99999999999999999999", "0x10", "0x1p3", "1d", "1f", "1.5D", "NaN", "nan",
        "Infinity", "-Infinity", "inf", "-Inf", "+INFINITY", "abc", "1_000", "1,000", "\u00a05", "\u0661", "123.456", "0.1", "0.30000000000000004",
        "3.4028236e38", "16777217", "0.000000000000000000000000000000000000001", "12345678901234567890123456789012345678",
        "123456789012345678901234567890123456789", "0.005", "-0.005", "0.015", "0.025", "99.995", "999.995", "1e37", "1e38", "1e-50", "000000000000000000000000000007",
        "1.8014398509481985e16", "7.038531e-26", "9007199254740993", "1e2147483648", "true", "1l", "5L",
        "0e39", "-0.0e41", "0e2147483647", "0e2147483648", "0.0e-2147483646", "0.0e-2147483647", "1e-2147483647", "1e-2147483648", f"1e{'1' * 5000}", f"1e-{'1' * 5000}", f"1e{'0' * 5000}1", f"1{'0' * 400}e-400",
        "0x1.000001000000001p0", "-0x1.000001000000001p0", "0x1.000001p0", "0x1.000003p0", "0x1.000003000000001p0", "0x1.000002fffffffffp0", "0x1.fffffefffffffffp127", "0x1.ffffffp127", "0x1p128", "0x.8p-149", "0x0.8000000000001p-149",
        "0x0.8000000000000001p-149", "0x1.8p-149", "0x.p1", "0xp1", "0x1.p1", "0x.1p1f", "0x0p99999999999", "0x1p99999999999", "-0x1p-99999999999", f"0x{'0' * 300}1{'0' * 300}.8p-1200", f"0x1.000001000000001p{'0' * 5000}1",
    ),
)  # fmt: skip
BOOL_STRINGS = Arg(
    t.STRING,
    (
        "true",
        "TRUE",
        " t ",
        "T",
        "y",
        "Yes",
        "1",
        "false",
        "F",
        "n",
        "NO",
        "0",
        "",
        "tr",
        "2",
        "\ttrue\n",
        "on",
        "off",
    ),
)
DATE_STRINGS = Arg(
    t.STRING,
    (
        "2020-01-01", "1970-01-01", "2020-1-2", "2020-02-29", "2021-02-29", "2020", "2020-03", "2020 ", " 2020-01-01 ", "2020-01-01T", "2020-01-01 12:00:00",
        "2020-01-01Tfoo", "2020-01-01x", "0001-01-01", "9999-12-31", "0000-01-01", "-0001-01-01", "+2020-01-01", "10000-01-01", "1234567-01-01", "12345678-01-01",
        "202-01-01", "2020-13-01", "2020-00-10", "2020-12-32", "2020-12-00", "20200101", "2020/01/01", "", " ", "abc", "2020-01-", "2020-", "2020--01", "5881580-07-12",
        "2020-001-01", "1582-10-10", "2020-01-31", "2020-04-31", "2020-01-01 ", "\t2020-03-04", "2020-03 ", "epoch",
    ),
)  # fmt: skip
STAMP_STRINGS = Arg(
    t.STRING,
    (
        *DATE_STRINGS.values, "2020-01-01 00:00:00", "2020-01-01T23:59:59", "2020-01-01 1:2:3", "2020-01-01 12", "2020-01-01 12:", "2020-01-01 12:30", "2020-01-01 12:30:15.1",
        "2020-01-01 12:30:15.123456", "2020-01-01 12:30:15.123456789", "2020-01-01 12:30:15.", "2020-01-01 24:00:00", "2020-01-01 12:60:00", "2020-01-01 12:00:60",
        "2020-01-01 12:30:15Z", "2020-01-01 12:30:15 Z", "2020-01-01T12:30:15.5+01:00", "2020-01-01T12:30:15-08:00", "2020-01-01T12:30:15+1:30", "2020-01-01T12:30:15+19:00",
        "2020-01-01T12:30:15+18:00", "2020-01-01T12:30:15+07", "2020-01-01 12:30:15 UTC", "2020-01-01 12:30:15 America/New_York", "2020-06-01 12:30:15.25 Europe/Paris",
        "2020-01-01 12:30:15 GMT+2", "2020-01-01 12:30:15 UTC+02:30", "2020-01-01 12:30:15 Nowhere/City", "2020-01-01 12:30:15 +01:00", "2021-03-14 02:30:00", "2021-11-07 01:30:00",
        "2020-01-01 12:30:15+", "2020-01-01 12:30:15.12+", "2020-01-01  12:30:15", "2020-01-01 12:30:15 ", "2020-01-01 12:30:15.1x", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999",
        "-0044-03-15 10:00:00", "2050-07-04 10:00:00", "1883-11-18 12:05:00", "2020-01-01 12:30Z", "2020-01-01 12:30:15+0100",
    ),
)  # fmt: skip
LA = "America/Los_Angeles"
for target in (
    t.BYTE,
    t.SHORT,
    t.INT,
    t.LONG,
    t.FLOAT,
    t.DOUBLE,
    t.decimal(5, 2),
    t.decimal(10, 0),
    t.decimal(18, 4),
    t.decimal(38, 10),
    t.decimal(38, 38),
    t.decimal(20, 3),
):
    CASES += _modes(NUMBER_STRINGS, target)
ODD_STRINGS = Arg(t.STRING, ("\x01inf\x01", "\u00a0inf", "0x1p2000", "-0X1P2000f", "\U0001d7cf", "\uff11", "123456789012345678901234567890"))  # fmt: skip
for target in (t.FLOAT, t.DOUBLE, t.decimal(9, 2), t.decimal(38, 0)):
    CASES += _modes(ODD_STRINGS, target)
for source in (v.LOWEST, v.LOWEST38):
    for target in (t.STRING, t.LONG, t.decimal(38, 0), t.decimal(10, 0)):
        CASES += _modes(source, target)
CASES += _modes(Arg(t.DATE, (106_751_991, -106_751_991, 0)), t.timestamp("UTC"))
CASES += _modes(BOOL_STRINGS, t.BOOL)
CASES += _modes(DATE_STRINGS, t.DATE)
for zone in ("UTC", LA):
    CASES += _modes(STAMP_STRINGS, t.timestamp("UTC"), tz=zone)
CASES += _modes(STAMP_STRINGS, t.TIMESTAMP_NTZ)
CASES += _modes(
    Arg(t.STRING, ("294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775808", "294248-01-01")),
    t.timestamp("UTC"),
)
CASES += [cast_case(v.STRINGS, t.BINARY)]
printed = [s for s in NUMERIC if not t.is_fractional(s.dtype)]
for source in (*printed, v.PRINTED_FLOATS, v.PRINTED_DOUBLES, v.BOOLS, v.WIDE_DATES, v.NTZ):
    CASES += _modes(source, t.STRING)
for zone in ("UTC", LA, "Asia/Kolkata", "+05:30"):
    for source, target in (
        (v.TIMESTAMPS, t.STRING), (v.TIMESTAMPS, t.DATE), (v.WIDE_DATES, t.timestamp("UTC")), (v.TIMESTAMPS, t.TIMESTAMP_NTZ), (v.NTZ, t.timestamp("UTC")),
    ):  # fmt: skip
        CASES.append(cast_case(source, target, tz=zone))
CASES += [cast_case(v.NTZ, t.DATE), cast_case(v.WIDE_DATES, t.TIMESTAMP_NTZ)]
for target in (t.BYTE, t.SHORT, t.INT, t.LONG, t.FLOAT, t.DOUBLE):
    CASES += _modes(v.TIMESTAMPS, target)
for source in (v.BYTES, v.INTS, v.LONGS):
    CASES.append(cast_case(source, t.timestamp("UTC")))
