"""Timestamps from strings and fields, and by units."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.strings import c
from tests.functions.parity import Arg, Case, Lit, text

ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata")
STRINGS = (
    "2019-01-31", "2019-02-29", "2020-02-29", "2019-1-3", "2019-13-01", "2019-01-32", "0001-01-01", "9999-12-31", "20190131", "31/01/2019", "1/2/2019",
    "2019-01-31 23:59:59", "2019-01-31T23:59:59", "2019-01-31t23:59:59", "2019-01-31 24:00:00", "2019-01-31 23:60:00", "2019-01-31 23:59", "2019-03-10 02:30:00",
    "2019-11-03 01:30:00", "2019-01-31 23:59:59.1", "2019-01-31 23:59:59.123", "2019-01-31 23:59:59.123456", "2019-01-31 23:59:59.1234567", "2019", "2019-01",
    " 2019-01-31", "2019-01-31 ", "", "x", "2019-01-31x", "31.01.2019 07:05", "2019_01_31", "201901", "٢٠١٩-01-31", "2019-001-01",
    "31-jan-2019", "29-FEB-2019", "1-Sep-2019", "31-Xyz-2019", "31 January 19", "1 MAY 20", "2019-01-31 12:05 AM", "2019-01-31 12:05pm", "2019-01-31 11:59 Pm",
    "2019-01-31 00:05 AM", "2019-01-31 13:05 PM", "2019-01-31 11:59", "31Jan2019",
)  # fmt: skip
PATTERNS = (
    "yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss", "yyyyMMdd", "dd/MM/yyyy", "d/M/yyyy", "yyyy-M-d", "yyyy-MM-dd HH:mm", "yyyy", "yyyy-MM",
    "yyyy-MM-dd HH:mm:ss.SSS", "yyyy-MM-dd HH:mm:ss.SSSSSS", "dd.MM.yyyy HH:mm", "yyyyMM",
    "dd-MMM-yyyy", "d-MMM-yyyy", "d MMMM yy", "yyyy-MM-dd hh:mm a", "yyyy-MM-dd h:m a", "ddMMMyyyy",
)  # fmt: skip


def _parsed(name: str, pattern: str) -> Any:
    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        dtype = t.timestamp(tz) if name == "parse_timestamp" else None
        return Call.of(name, args[0], Literal(pattern, t.STRING), mode=mode, tz=tz, dtype=dtype)

    return build


def parsing(name: str, sql: str, pattern: str, strings: tuple[str, ...] = STRINGS, **options: Any) -> Case:
    quoted = pattern.replace("'", "\\'")
    return Case(
        name, f"{sql}({{0}}, '{quoted}')", (Arg(t.STRING, strings),), _parsed(name, pattern), **options
    )


CASES: list[Case] = []
for pattern in PATTERNS:
    CASES.append(
        parsing("parse_timestamp", "try_to_timestamp", pattern, mode=EvalMode.LEGACY, check_nullable=False)
    )
    CASES.append(parsing("unix_timestamp", "unix_timestamp", pattern, ansi=False))
for tz in ZONES[1:]:
    CASES.append(
        parsing(
            "parse_timestamp",
            "try_to_timestamp",
            "yyyy-MM-dd HH:mm:ss",
            mode=EvalMode.LEGACY,
            tz=tz,
            check_nullable=False,
        )
    )
for stamps in (v.TIMESTAMPS, v.DATES):
    CASES += [c("unix_timestamp", stamps, tz=tz) for tz in ZONES]
CASES += [
    parsing("parse_timestamp", "to_timestamp", "yyyy-MM-dd"), parsing("unix_timestamp", "to_unix_timestamp", "yyyy-MM-dd HH:mm:ss"), c("unix_timestamp", Arg(t.STRING, STRINGS), ansi=False),
    parsing("parse_timestamp", "to_timestamp", "yyyy/MM/dd", ("2019/01/31", "1969/12/31", "0001/01/01")), parsing("parse_timestamp", "to_timestamp", "dd.MM.yyyy HH:mm:ss", ("31.01.2019 23:59:59", "01.02.1900 00:00:00"), tz=ZONES[1]),
]  # fmt: skip
COUNTS = Arg(t.LONG, (0, 1, -1, 13, -25, 400, 100000))
HUGE = Arg(t.LONG, (2**62, -(2**62), 10**7))
UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")


def _by_unit(name: str, unit: str, first: Arg, second: Arg, **options: Any) -> Case:
    return Case(name, f"{name}({unit}, {{1}}, {{2}})", (Lit(unit, t.STRING, ""), first, second), **options)


for unit in UNITS:
    CASES.append(_by_unit("timestampadd", unit, COUNTS, v.TIMESTAMPS, tz=ZONES[1]))
    CASES.append(_by_unit("timestampadd", unit, COUNTS, v.NTZ))
    CASES.append(_by_unit("timestampdiff", unit, v.TIMESTAMPS, v.TIMESTAMPS, tz=ZONES[1]))
    CASES.append(_by_unit("timestampdiff", unit, v.NTZ, v.TIMESTAMPS))
CASES.append(_by_unit("timestampadd", "YEAR", HUGE, v.TIMESTAMPS))
LAST = Arg(t.TIMESTAMP_NTZ, (2**62, -(2**62), 2**63 - 1, -(2**63)))
for unit in UNITS:
    CASES.append(_by_unit("timestampadd", unit, COUNTS, LAST))
CASES.append(_by_unit("timestampadd", "MICROSECOND", Arg(t.LONG, (2**63 - 1, -(2**63))), v.NTZ))
FIELDS = (Arg(t.INT, (1, 2020, 2019, 9999, -5)), Arg(t.INT, (1, 2, 12, 13, 0)), Arg(t.INT, (1, 29, 31, 0)), Arg(t.INT, (0, 2, 23, 24)), Arg(t.INT, (0, 30, 59, 60, -1)))  # fmt: skip
YEARS = Arg(t.INT, (292_000, -290_000))
ONES = [Arg(t.INT, (1,))] * 4
SECONDS = Arg(
    t.decimal(16, 6),
    tuple(Decimal(x) for x in ("0", "1.5", "59.999999", "60", "60.5", "61", "-1", "4295.967296")),
)


def _make_timestamp(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
    return Call.of("make_timestamp", *args, mode=mode, tz=tz, dtype=t.timestamp(tz))


CASES += [
    Case("make_timestamp", "make_timestamp({0}, {1}, {2}, {3}, {4}, {5})", (*FIELDS, SECONDS), _make_timestamp),
    Case("make_timestamp", "make_timestamp({0}, {1}, {2}, {3}, {4}, {5})", (*FIELDS, SECONDS), _make_timestamp, ansi=False, tz=ZONES[1]),
    Case("make_timestamp", "make_timestamp({0}, {1}, {2}, {3}, {4}, {5})", (YEARS, *ONES, SECONDS), _make_timestamp),
    *(c(name, v.TIMESTAMPS, text(zone)) for name in ("from_utc_timestamp", "to_utc_timestamp") for zone in ("Asia/Tokyo", "America/Los_Angeles", "UTC", "+05:30")),
    c("from_utc_timestamp", v.TIMESTAMPS, text("Asia/Tokyo"), tz=ZONES[1]), c("dayname", v.WIDE_DATES), c("monthname", v.WIDE_DATES),
]  # fmt: skip
DAYS = Arg(t.INT, (0, 1, -5, 366, 106751991, 106751992, -(2**31)))
PARTS = Arg(t.INT, (0, 1, -23, 2**31 - 1))
INTERVAL_SECONDS = Arg(
    t.decimal(18, 6), tuple(map(Decimal, ("0", "1.5", "-59.999999", "999999999999.999999")))
)
CASES += [
    c("make_dt_interval", DAYS, PARTS, PARTS, INTERVAL_SECONDS), c("make_dt_interval", DAYS), c("make_dt_interval", PARTS, PARTS), c("make_dt_interval"),
    *(c("convert_timezone", text(a), text(b), v.NTZ) for a, b in (("America/Los_Angeles", "Europe/Berlin"), ("UTC", "Asia/Kolkata"), ("+05:30", "UTC"))),
]  # fmt: skip
