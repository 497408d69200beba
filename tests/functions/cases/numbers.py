"""Arithmetic, comparison, logic, rounding and functions of doubles."""

from __future__ import annotations

from decimal import Decimal

from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.strings import FLAT, c
from tests.functions.parity import Arg, Case, integer

CASES: list[Case] = []
D, ANGLES = v.DOUBLES, v.DOUBLES
for name in ("sqrt", "rint", "signum"):
    CASES.append(c(name, D))
for name in (
    "cbrt",
    "exp",
    "expm1",
    "sin",
    "cos",
    "tan",
    "cot",
    "sec",
    "csc",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "degrees",
    "radians",
    "ln",
    "log2",
    "log10",
):
    CASES.append(c(name, D, ulps=2))
CASES += [c(name, D) for name in ("log1p", "asinh", "acosh", "atanh")]
ENDS = Arg(t.DOUBLE, (0.0, -0.0, 10.0, -3.5, 1e300, -1e300, float("nan"), float("inf"), float("-inf")))
BUCKETS = Arg(t.LONG, (1, 5, 0, -1, 10, 2**63 - 1, 2**63 - 2, 1000))
CASES += [
    c("width_bucket", v.DOUBLES, ENDS, ENDS, BUCKETS), c("width_bucket", v.SHORT_DOUBLES, ENDS, ENDS, BUCKETS),
    *(c("getbit", a, Arg(t.INT, (0, 1, 5, 7))) for a in (v.BYTES, v.SHORTS, v.INTS, v.LONGS)),
    *(c("getbit", a, Arg(t.INT, (0, 63, 64, -1, 31, 8))) for a in (v.BYTES, v.INTS, v.LONGS)),
]  # fmt: skip

CASES += [
    c("log", D, ulps=2), c("log", v.SHORT_DOUBLES, v.SHORT_DOUBLES, ulps=2), c("power", v.SHORT_DOUBLES, v.SHORT_DOUBLES, ulps=2), c("power", D, Arg(t.DOUBLE, (2.0, 0.5, 0.0, -1.0, 3.0)), ulps=2),
    c("atan2", v.SHORT_DOUBLES, v.SHORT_DOUBLES, ulps=2), c("hypot", v.SHORT_DOUBLES, v.SHORT_DOUBLES, ulps=2), c("pi"), c("e"), c("positive", v.INTS), c("positive", v.DEC),
    c("factorial", Arg(t.INT, (0, 1, 5, 20, 21, -1, 2**31 - 1))), c("bit_count", v.BOOLS),
]  # fmt: skip
SHIFTS = Arg(t.INT, (0, 1, 5, 31, 32, 33, 63, 64, -1, -33))
for ints in (v.BYTES, v.SHORTS, v.INTS, v.LONGS):
    CASES += [
        c("bitand", ints, ints, sql="{0} & {1}"),
        c("bitor", ints, ints, sql="{0} | {1}"),
        c("bitxor", ints, ints, sql="{0} ^ {1}"),
        c("bitnot", ints, sql="~{0}"),
        c("bit_count", ints),
    ]
for ints in (v.INTS, v.LONGS):
    CASES += [c(f"shift{k}", ints, SHIFTS) for k in ("left", "right", "rightunsigned")]
for name in ("round", "bround"):
    for source in (v.BYTES, v.SHORTS, v.INTS, v.LONGS):
        CASES += [
            c(name, source),
            *(
                c(name, source, integer(k), ansi=ansi)
                for k in (2, -1, -2, -10, -19, -25)
                for ansi in (True, False)
            ),
        ]
    for source in (v.PRINTED_FLOATS, v.PRINTED_DOUBLES):
        CASES += [c(name, source), *(c(name, source, integer(k)) for k in (0, 1, 2, 3, 5, -1, -2, 10, 25))]
    for source in v.DECIMALS:
        CASES += [c(name, source), *(c(name, source, integer(k)) for k in (0, 1, 2, -1, -3, 12))]
for name in ("ceil", "floor"):
    CASES += [c(name, v.LONGS), c(name, v.DOUBLES), *(c(name, d) for d in v.DECIMALS)]
    CASES += [c(name, d, integer(k)) for d in v.DECIMALS for k in (0, 1, 2, -1, -3, 12, -20)]
    CASES += [c(name, d, integer(-2), ansi=False) for d in v.DECIMALS]
for name, symbol in (("add", "+"), ("subtract", "-"), ("multiply", "*"), ("mod", "%"), ("pmod", "")):
    for source in (v.BYTES, v.SHORTS, v.INTS, v.LONGS, v.FLOATS, v.DOUBLES):
        sql = f"{{0}} {symbol} {{1}}" if symbol else ""
        CASES += [c(name, source, source, sql=sql), c(name, source, source, sql=sql, ansi=False)]
    for left, right in (
        (v.DEC, v.DEC),
        (v.DEC, v.DEC12),
        (v.DEC18, v.DEC18_6),
        (v.DEC20, v.DEC38),
        (v.DEC38_0, v.DEC38_38),
        (v.DEC38, v.DEC38),
    ):
        CASES += [c(name, left, right, sql=sql), c(name, left, right, sql=sql, ansi=False)]
for name in ("try_add", "try_subtract", "try_multiply"):
    for source in (v.INTS, v.LONGS, v.DEC38):
        CASES.append(
            c(name.removeprefix("try_"), source, source, sql=f"{name}({{0}}, {{1}})", mode=EvalMode.TRY)
        )
CASES += [
    c("divide", v.DOUBLES, v.DOUBLES, sql="{0} / {1}"), c("divide", v.DOUBLES, v.DOUBLES, sql="{0} / {1}", ansi=False), c("divide", v.DOUBLES, v.DOUBLES, sql="try_divide({0}, {1})", mode=EvalMode.TRY),
    *(c("divide", a, b, sql="{0} / {1}", ansi=ansi) for a, b in ((v.DEC, v.DEC), (v.DEC18, v.DEC18_6), (v.DEC38, v.DEC38), (v.DEC12, v.DEC5_5)) for ansi in (True, False)),
    *(c("div", a, a, sql="{0} div {1}", ansi=ansi) for a in (v.LONGS, v.DEC, v.DEC38) for ansi in (True, False)),
    *(c("negative", a, sql="-{0}", ansi=ansi) for a in (v.BYTES, v.SHORTS, v.INTS, v.LONGS, v.FLOATS, v.DOUBLES, v.DEC, v.DEC38, v.INTERVALS) for ansi in (True, False)),
    *(c("abs", a, ansi=ansi) for a in (v.BYTES, v.SHORTS, v.INTS, v.LONGS, v.FLOATS, v.DOUBLES, v.DEC, v.DEC38) for ansi in (True, False)),
]  # fmt: skip
SUMS = Arg(
    t.decimal(19, 0),
    (Decimal(5 * 10**18), Decimal(-5 * 10**18), Decimal(8 * 10**18), Decimal(-8 * 10**18), Decimal(1)),
)
SMALL = Arg(t.decimal(18, 17), (Decimal("-9.9"), Decimal("9.9"), Decimal("-0.1")))
BIG = Arg(t.decimal(2, 0), (Decimal(-92), Decimal(92), Decimal(-5)))
for ansi in (True, False):
    CASES += [c("pmod", a, b, ansi=ansi) for a, b in ((SUMS, SUMS), (SMALL, BIG), (BIG, SMALL))]
NINES = Arg(t.decimal(38, 0), (Decimal("9" * 38), Decimal(-7), Decimal(10**30)))
TINY = Arg(t.decimal(38, 38), (Decimal("1e-38"), Decimal("0.5"), Decimal("-0.1")))
for ansi in (True, False):
    CASES.append(c("div", NINES, TINY, sql="{0} div {1}", ansi=ansi))
    CASES += [
        c(name, NINES, integer(k), ansi=ansi)
        for name in ("round", "bround", "ceil", "floor")
        for k in (-1, -20)
    ]
for lowest in (v.LOWEST, v.LOWEST38):
    CASES += [
        c("round", lowest, integer(0)),
        c("ceil", lowest),
        c("negative", lowest, sql="-{0}"),
        c("abs", lowest),
        c("gt", lowest, lowest, sql="{0} > {1}"),
    ]
CASES += [
    c(name, NINES, TINY, sql=f"{{0}} {symbol} {{1}}")
    for name, symbol in (("eq", "="), ("lt", "<"), ("gteq", ">="))
]
for flat in FLAT:
    for name, symbol in (
        ("eq", "="),
        ("lt", "<"),
        ("lteq", "<="),
        ("gt", ">"),
        ("gteq", ">="),
        ("eq_null_safe", "<=>"),
        ("neq", "<>"),
    ):
        CASES.append(c(name, flat, flat, sql=f"{{0}} {symbol} {{1}}"))
    CASES += [c("isnull", flat, sql="{0} is null"), c("isnotnull", flat, sql="{0} is not null")]
for left, right in ((v.DEC, v.DEC12), (v.DEC18, v.DEC38), (v.DEC5_5, v.DEC20)):
    CASES += [
        c(name, left, right, sql=f"{{0}} {symbol} {{1}}")
        for name, symbol in (("eq", "="), ("lt", "<"), ("gteq", ">="))
    ]
CASES += [
    c("isnan", v.DOUBLES),
    c("isnan", v.FLOATS),
    c("and", v.BOOLS, v.BOOLS, sql="{0} and {1}"),
    c("or", v.BOOLS, v.BOOLS, sql="{0} or {1}"),
    c("not", v.BOOLS, sql="not {0}"),
]
