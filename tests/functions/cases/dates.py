"""Date and timestamp functions, in UTC and in zones with gaps and overlaps."""

from __future__ import annotations

from decimal import Decimal

from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.functions.datetime import calendar_intervals
from kquery_spark.functions.datetime.year_month_intervals import MONTH, YEAR, YEAR_TO_MONTH
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.strings import c
from tests.functions.parity import Arg, Build, Case, text

ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata")
FEW = Arg(t.INT, (0, 1, -1, 11, -13, 25))
SECONDS_OF_INTERVALS = Arg(
    t.decimal(18, 6),
    (Decimal("0.000000"), Decimal("-0.000001"), Decimal("86399.999999"), Decimal("-100000.500000")),
)
STEPS = Arg(t.INT, (0, 1, -1, 30, 365, -366, 100000))
MONTHS = Arg(t.INT, (0, 1, -1, 11, 12, -13, 600, -25))
WIDE = Arg(t.DAY_TIME, (2**63 - 1, -(2**63), 7, -7, 5, -5, 2**62, 90061000001, -90061000001))


def _calendar_interval(part: str, stamps: Arg, fields: tuple[Arg, ...], first: int, tz: str) -> Case:
    """A timestamp and ``make_interval`` of some of its seven fields; ``part`` selects one."""
    zeros = ["0"] * first
    sql = f"{{0}} + make_interval({', '.join([*zeros, *(f'{{{i + 1}}}' for i in range(len(fields)))])})"

    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        zero = Literal(0, t.INT)
        given = [zero] * first + args[1:]
        years, months, weeks, days, hours, minutes = (given + [zero] * 6)[:6]
        seconds = given[6] if len(given) > 6 else Literal(Decimal("0.000000"), t.decimal(18, 6))
        counts = (
            Call.of(calendar_intervals.MONTHS, years, months),
            Call.of(calendar_intervals.DAYS, weeks, days),
            Call.of(calendar_intervals.MICROS, hours, minutes, seconds),
        )
        return Call.of(calendar_intervals.ADDITION, args[0], *counts, tz=tz)

    return Case(part, sql, (stamps, *fields), build, tz=tz)


CASES: list[Case] = []
for name in ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear"):
    CASES.append(c(name, v.WIDE_DATES))
CASES.append(c("yearofweek", v.WIDE_DATES, sql="extract(yearofweek from {0})"))
for tz in ZONES:
    for stamps in (v.TIMESTAMPS, v.NTZ):
        CASES += [c(name, stamps, tz=tz) for name in ("hour", "minute", "second")]
        CASES.append(c("second_with_fraction", stamps, sql="extract(second from {0})", tz=tz))
        CASES.append(c("timestamp_add_interval", stamps, v.INTERVALS, sql="{0} + {1}", tz=tz))
        CASES += [
            _calendar_interval(calendar_intervals.MONTHS, stamps, (FEW, FEW), 0, tz),
            _calendar_interval(calendar_intervals.DAYS, stamps, (FEW, FEW), 2, tz),
            _calendar_interval(calendar_intervals.MICROS, stamps, (FEW, FEW, SECONDS_OF_INTERVALS), 4, tz),
            _calendar_interval(calendar_intervals.ADDITION, stamps, (FEW,) * 6, 0, tz),
        ]
        CASES.append(c("subtract_timestamps", stamps, stamps, sql="{0} - {1}", tz=tz))
    CASES.append(c("months_between", v.TIMESTAMPS, v.TIMESTAMPS, tz=tz))
    for level in (
        "year",
        "quarter",
        "MON",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
        "nope",
        "dd",
        "yy",
    ):
        CASES.append(c("date_trunc", text(level), v.TIMESTAMPS, tz=tz))
CASES += [
    c("date_add", v.DATES, STEPS), c("date_sub", v.DATES, STEPS), c("date_add", v.DATES, v.SHORTS), c("datediff", v.WIDE_DATES, v.DATES),
    c("subtract_dates", v.DATES, v.DATES, sql="{0} - {1}"), c("add_months", v.DATES, MONTHS), c("last_day", v.DATES),
    c("next_day", v.DATES, Arg(t.STRING, ("mon", "Tuesday", "WE", "sat", "xx", "", "su"))), c("next_day", v.DATES, text("fri")), c("next_day", v.DATES, Arg(t.STRING, ("mon", "bad")), ansi=False),
    c("make_date", Arg(t.INT, (1, 2020, 2021, 9999, 0, -1, 10000)), Arg(t.INT, (0, 1, 2, 12, 13)), Arg(t.INT, (0, 1, 28, 29, 30, 31, 32))),
    c("make_date", Arg(t.INT, (2020, 2021)), Arg(t.INT, (0, 1, 2, 13)), Arg(t.INT, (0, 1, 29, 31)), ansi=False),
    *(c("trunc", v.DATES, text(level)) for level in ("year", "Quarter", "MM", "week", "day", "nope", "mon", "yyyy")), c("trunc", v.DATES, Arg(t.STRING, ("year", "mm", "x", ""))),
    c("date_trunc", Arg(t.STRING, ("year", "hour", "x", "")), v.TIMESTAMPS), c("months_between", v.TIMESTAMPS, v.TIMESTAMPS, v.BOOLS),
    c("unix_seconds", v.TIMESTAMPS), c("unix_millis", v.TIMESTAMPS), c("unix_micros", v.TIMESTAMPS), c("unix_date", v.DATES), c("date_from_unix_date", STEPS),
]  # fmt: skip
ENDS = Arg(t.DATE, (2**31 - 1, -(2**31), 0))
CASES += [
    c("next_day", ENDS, text("MO")),
    c("date_add", ENDS, STEPS),
    c("make_date", Arg(t.INT, (5_850_000, -5_850_000, 2**31 - 1)), Arg(t.INT, (1,)), Arg(t.INT, (1,))),
    c("timestamp_micros", Arg(t.LONG, (2**63 - 1, -(2**63)))),
]
MICROS = Arg(t.LONG, (0, 1, -1, 1_600_000_000, -62_135_596_800, 253_402_300_799))
CASES += [c(name, MICROS) for name in ("timestamp_seconds", "timestamp_millis", "timestamp_micros")]
SECONDS = Arg(t.LONG, (0, 1, -1, 1_600_000_000, -62_135_000_000, 253_402_200_000))
CASES += [c("timestamp_seconds", v.INTS)]
YM = "make_ym_interval(0, {1})"
for tz in ZONES[:2]:
    CASES += [
        c("timestamp_add_months", stamps, MONTHS, sql=f"{{0}} + {YM}", tz=tz)
        for stamps in (v.TIMESTAMPS, v.NTZ)
    ]
CASES += [
    c("add_months", v.DATES, MONTHS, sql=f"{{0}} + {YM}"),
    *(
        c("multiply_interval", a, b, sql="{0} * {1}")
        for a in (v.INTERVALS, WIDE)
        for b in (v.INTS, v.LONGS, v.DOUBLES, v.BYTES)
    ),
    *(
        c("divide_interval", a, b, sql="{0} / {1}")
        for a in (v.INTERVALS, WIDE)
        for b in (v.INTS, v.LONGS, v.DOUBLES, v.SHORT_DOUBLES)
    ),
    *(
        c(f"interval_{part}", a, sql=f"extract({part.upper()} FROM {{0}})")
        for part in ("days", "hours", "minutes", "seconds")
        for a in (v.INTERVALS, WIDE)
    ),
    c("add", v.INTERVALS, v.INTERVALS, sql="{0} + {1}"),
    c("subtract", v.INTERVALS, v.INTERVALS, sql="{0} - {1}"),
]
MONTH_COUNTS = Arg(t.YEAR_MONTH, (0, 1, -1, 11, 12, -12, 13, -25, 1200, 2**30, 2**31 - 1, -(2**31)))
FEW_MONTHS = Arg(t.YEAR_MONTH, (0, 7, -13, 24, 2**31 - 1))


def _shown(fields: str) -> Build:
    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        interval = Call.of("interval_whole_years", args[0]) if fields == YEAR else args[0]
        return Call.of("interval_text", interval, args[1])

    return build


FACTORS = (v.INTS, v.LONGS, v.BYTES, v.SHORT_DOUBLES, v.DOUBLES)
CASES += [
    c("make_ym_interval", v.INTS, v.INTS), c("make_ym_interval", v.INTS, MONTHS),
    c("interval_total_months", MONTH_COUNTS, sql="cast(cast({0} as interval month) as int)"),
    c("interval_years", MONTH_COUNTS, sql="extract(years from {0})"), c("interval_years", MONTH_COUNTS, sql="cast(cast({0} as interval year) as int)"),
    c("interval_months", MONTH_COUNTS, sql="extract(months from {0})"), c("interval_whole_years", MONTH_COUNTS, sql="cast({0} as interval year)"),
    *(c("interval_text", MONTH_COUNTS, text(f), sql=f"cast(cast({{0}} as {f}) as string)", build=_shown(f)) for f in (YEAR, MONTH, YEAR_TO_MONTH)),
    *(
        c("interval_of_text", Arg(t.STRING, values), text(f), sql=f"cast({{0}} as {f})", check_nullable=False)
        for f, values in ((YEAR_TO_MONTH, ("1-2", "-0-11", "+178956970-07", "-178956970-8", "178956970-8", "999999999-0")), (YEAR, ("1", "-20", "+3", "178956970", "178956971")), (MONTH, ("0", "-1", "999999999")))
    ),
    *(c("multiply_interval", MONTH_COUNTS, b, sql="{0} * {1}") for b in FACTORS), *(c("divide_interval", MONTH_COUNTS, b, sql="{0} / {1}") for b in FACTORS),
    *(c(name, MONTH_COUNTS, FEW_MONTHS, sql=f"{{0}} {op} {{1}}") for name, op in (("add", "+"), ("subtract", "-"))),
    *(c(name, a, sql=sql) for name, sql in (("negative", "-{0}"), ("abs", "abs({0})")) for a in (MONTH_COUNTS, v.INTERVALS, WIDE)),
    *(c(name, MONTH_COUNTS, FEW_MONTHS, sql=f"{{0}} {op} {{1}}") for name, op in (("eq", "="), ("lt", "<"), ("gteq", ">="), ("eq_null_safe", "<=>"))),
    *(c(name, MONTH_COUNTS, FEW_MONTHS) for name in ("greatest", "least", "hash", "xxhash64")),
]  # fmt: skip

for tz in ZONES:
    for pattern in (
        "yyyy-MM-dd",
        "yyyyMMdd",
        "HH:mm:ss.SSS",
        "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
        "dd/MM/yyyy HH",
        "yyyy",
        "EEE, d MMM yy h:m:s a",
        "EEEE MMMM DDD D Q QQQ QQQQ K k y",
        "ssSSSSSSSSS S",
    ):
        CASES.append(c("date_format", v.TIMESTAMPS, text(pattern), tz=tz))
    CASES += [c("from_unixtime", SECONDS, tz=tz), c("from_unixtime", SECONDS, text("yyyy/MM/dd"), tz=tz)]
