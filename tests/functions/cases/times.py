"""Times of a day: their casts, fields, arithmetic, and functions that make them of other values."""

from __future__ import annotations

from decimal import Decimal

from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.parity import Arg, Case, cast_case, text

_SECOND = 10**9
TIMES = Arg(
    t.TIME,
    (0, 1000, 999_999_000, _SECOND, 59 * _SECOND, 127 * _SECOND, 128 * _SECOND, 32768 * _SECOND, 45_296_987_654_000, 86_399_999_999_000, 43_200_000_000_000, 3_600_100_000_000),
)  # fmt: skip
STRINGS = Arg(
    t.STRING,
    (
        "12:34", "1:2", "1:2:3", "01:02:03.1234567", "23:59:59.999999", "00:00:00", "24:00:00", "23:60:00", "12:34:60", " 12:34:56 ", "12", "12:34:56.", "12:34:.5", "T12:34", "t12:34", "TT1:00",
        "12:34:56Z", "12:34:56+01:00", "12:34:56 UTC", "1:2:3.5 pm", "01:02:03 PM", "12:00 AM", "12:00 pm", "0:00 AM", "13:00 PM", "1:00PM", "1:00 Am", "1:00  pm", "1:00\tpm", "1:00 p.m.", " pm", "AM", "T1:00 PM",
        "2020-01-01 12:34:56", "", ":", "1:", ":1", "-1:00", "+1:00", "012:00:00", "12:345:00", "12:34:567", "\u0663:00", "12:34:56.123456789123", "12:34:56.1x", "12:34:56,5", "12:34:56 ", "12:34 56", "1:2:3:4", "12.34", "1:00 ampm", "1:00 a m", "1:00 mp",
    ),
)  # fmt: skip
HOURS = Arg(t.INT, (0, 1, 23, 24, -1))
MINUTES = Arg(t.INT, (0, 59, 60))
SECONDS = Arg(t.decimal(16, 6), tuple(map(Decimal, ("0", "59.999999", "60", "-0.000001", "3.5"))))
COUNTS = Arg(
    t.LONG,
    (0, 1, -1, 86399, 86400, 86_399_999, 86_400_000, 86_399_999_999, 86_400_000_000, 2**63 - 1, -(2**63)),
)
DECIMALS = Arg(
    t.decimal(12, 6), tuple(map(Decimal, ("0", "1.5", "86399.999999", "86400", "-0.000001", "123456.5")))
)
INTERVALS = Arg(
    t.DAY_TIME, (0, 1, -1, 3_600_000_000, -3_600_000_000, 43_199_999_999, 86_400_000_000, 2**63 - 1, -(2**63))
)
UNITS = ("HOUR", "minute", "Second", "MILLISECOND", "MICROSECOND")


def c(function: str, sql: str, *args: Arg, **options: object) -> Case:
    """A call whose arguments are all columns."""
    return Case(function, sql, args, **options)  # type: ignore[arg-type]


def _added(sign: str) -> Case:
    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        decimals = Literal(6, t.INT)
        return Call.of("time_add_interval", args[0], decimals, args[1], Literal(3, t.BYTE), decimals)

    return Case("time_add_interval", f"{{0}} {sign} {{1}}", (TIMES, INTERVALS), build)


def _to_time(function: str, mode: EvalMode) -> Case:
    return Case("to_time", f"{function}({{0}})", (STRINGS,), mode=mode, check_nullable=False)


def _cut(decimals: int) -> Case:
    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        return Call.of("cut_time", args[0], Literal(decimals, t.INT))

    return Case("cut_time", f"CAST(CAST({{0}} AS TIME({decimals})) AS TIME(6))", (TIMES,), build)


def _at(zone: str) -> Case:
    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        return Call.of("timestamp_at", *args, Literal(tz, t.STRING))

    return Case(
        "timestamp_at", "make_timestamp({0}, {1})", (v.DATES, TIMES), build, tz=zone, check_nullable=False
    )


def _seconds_with_fraction() -> Case:
    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        return Call.of("second_with_fraction", args[0])

    return Case("second_with_fraction", "extract(SECOND FROM {0})", (TIMES,), build, check_nullable=False)


CASES = [
    *(cast_case(STRINGS, t.TIME, mode=mode) for mode in (EvalMode.ANSI, EvalMode.TRY)),
    cast_case(STRINGS, t.TIME, ansi=False),
    *(
        cast_case(TIMES, target, mode=mode)
        for target in (
            t.STRING,
            t.BYTE,
            t.SHORT,
            t.INT,
            t.LONG,
            t.decimal(20, 9),
            t.decimal(5, 0),
            t.decimal(4, 0),
            t.decimal(38, 2),
        )
        for mode in (EvalMode.ANSI, EvalMode.TRY)
    ),
    *(cast_case(TIMES, target, ansi=False) for target in (t.BYTE, t.SHORT, t.INT, t.decimal(4, 0))),
    cast_case(v.TIMESTAMPS, t.TIME, tz="America/New_York"),
    cast_case(v.NTZ, t.TIME),
    *(c(name, f"{name}({{0}})", TIMES, check_nullable=False) for name in ("hour", "minute", "second")),
    _seconds_with_fraction(),
    c("make_time", "make_time({0}, {1}, {2})", HOURS, MINUTES, SECONDS, check_nullable=False),
    _to_time("to_time", EvalMode.ANSI),
    _to_time("try_to_time", EvalMode.TRY),
    *(
        Case("time_diff", "time_diff({0}, {1}, {2})", (text(unit), TIMES, TIMES), check_nullable=False)
        for unit in UNITS
    ),
    *(
        Case("time_trunc", "time_trunc({0}, {1})", (text(unit), TIMES), check_nullable=False)
        for unit in UNITS
    ),
    *(
        c(f"time_from_{unit}", f"time_from_{unit}({{0}})", COUNTS, check_nullable=False)
        for unit in ("seconds", "millis", "micros")
    ),
    *(
        c("time_from_seconds", "time_from_seconds({0})", arg, check_nullable=False)
        for arg in (v.INTS, v.BYTES, DECIMALS)
    ),
    *(
        c(f"time_to_{unit}", f"time_to_{unit}({{0}})", TIMES, check_nullable=False)
        for unit in ("seconds", "millis", "micros")
    ),
    *map(_cut, range(6)),
    _added("+"),
    c("subtract_times", "CAST({0} - {1} AS INTERVAL DAY TO SECOND)", TIMES, TIMES, check_nullable=False),
    c("timestamp_ntz_at", "make_timestamp_ntz({0}, {1})", v.DATES, TIMES, check_nullable=False),
    _at("UTC"),
    _at("America/New_York"),
    *(c(name, f"{name}({{0}})", TIMES) for name in ("hash", "xxhash64")),
    *(c(name, f"{{0}} {symbol} {{1}}", TIMES, TIMES) for name, symbol in (("lt", "<"), ("eq", "="))),
]
