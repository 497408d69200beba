"""The expressions that `tests.functions.boundaries` evaluates over boundary values of types.

`{l}` in an expression is a column of BIGINT, or a literal of it.
"""

from __future__ import annotations

from collections.abc import Iterator

# fmt: off
_SCALES = (
    -2147483648, -400, -40, -39, -38, -37, -20, -19, -18, -10, -9, -3, -2, -1, 0, 1, 2, 3, 17, 18, 19, 37, 38, 39, 40, 400,
    2147483647,
)
# fmt: on


def _roundings() -> Iterator[str]:
    for kind in "bhildfpqrsuvw":
        for name in ("round", "bround", "floor", "ceil"):
            yield f"{name}({{{kind}}})"
            yield from (f"{name}({{{kind}}}, {scale})" for scale in _SCALES)
    yield from (f"{name}({{str}}, -1)" for name in ("round", "floor", "ceil"))


def _operators() -> Iterator[str]:
    for a, b in ("ij", "lm", "lj", "il"):
        yield from (f"{{{a}}} {operator} {{{b}}}" for operator in ("+", "-", "*", "/", "%", "div"))
        yield f"pmod({{{a}}}, {{{b}}})"
        for name in ("add", "subtract", "multiply", "divide", "mod"):
            yield f"try_{name}({{{a}}}, {{{b}}})"
    for kind in "bhildfpqrsuvw":
        yield from (
            form.format(k=f"{{{kind}}}")
            for form in (
                "-{k}",
                "abs({k})",
                "positive({k})",
                "sign({k})",
                "{k} + 1",
                "{k} - 1",
                "{k} * 2",
                "{k} % 3",
                "{k} div 3",
                "{k} div -1",
                "pmod({k}, 3)",
                "pmod({k}, -3)",
                "{k} % -1",
                "CAST({k} AS TINYINT)",
                "CAST({k} AS INT)",
                "CAST({k} AS BIGINT)",
                "CAST({k} AS DECIMAL(38, 18))",
                "CAST({k} AS DECIMAL(5, 2))",
                "try_cast({k} AS INT)",
                "CAST({k} AS STRING)",
                "CAST({k} AS TIMESTAMP)",
                "-(-{k})",
                "{k} + {k}",
                "{k} * {k}",
                "{k} / 3",
                "3 / {k}",
                "pmod({k}, {k})",
                "{k} div {k}",
                "hex(CAST({k} AS BIGINT))",
                "width_bucket({k}, -10, 10, 5)",
                "{k} * INTERVAL '1' MONTH",
                "{k} * INTERVAL '1' SECOND",
                "INTERVAL '178956970-7' YEAR TO MONTH * {k}",
                "INTERVAL '1' DAY / {k}",
                "INTERVAL '1' YEAR / {k}",
            )
        )


_OTHERS = """
bin({l})
bin({i})
hex({l})
hex({i})
conv({l}, 10, 16)
conv({l}, 10, -16)
conv({str}, 36, 10)
conv({str}, 36, -10)
conv({str}, 16, -2)
conv({str}, {j}, 10)
conv({str}, 10, {j})
shiftleft({i}, {j})
shiftright({i}, {j})
shiftrightunsigned({i}, {j})
shiftleft({l}, {j})
shiftright({l}, {j})
shiftrightunsigned({l}, {j})
{l} << {j}
~{l}
{l} & {m}
{l} ^ {m}
bit_count({l})
bit_get({l}, 63)
getbit({l}, 0)
factorial({i})
factorial({j})
width_bucket({d}, 0, 1, {l})
width_bucket({d}, -1e308, 1e308, 10)
width_bucket({d}, 0, 1, 9223372036854775807)
width_bucket({d}, 0, 1, 9223372036854775806)
width_bucket({d}, 5, 5, 3)
width_bucket({ym}, INTERVAL '0' YEAR, INTERVAL '10' YEAR, 10)
width_bucket({dt}, INTERVAL '0' DAY, INTERVAL '10' DAY, 10)
sequence({i}, {i})
sequence(2147483640, {i}, 5)
sequence(-2147483640, {i}, -5)
size(sequence({l}, {l}))
sequence({l} , {m}, 4611686018427387904)
sequence({l} , {m}, -4611686018427387905)
sequence({l} , {m}, 9223372036854775807)
sequence(9223372036854775800, {l}, 3)
sequence(-9223372036854775800, {l}, -3)
sequence({b}, CAST(127 AS TINYINT), CAST(50 AS TINYINT))
sequence({b}, CAST(-128 AS TINYINT), CAST(-50 AS TINYINT))
sequence({h}, CAST(32767 AS SMALLINT), CAST(10000 AS SMALLINT))
sequence({date}, DATE'2024-02-29', INTERVAL '2000' YEAR)
sequence(DATE'2024-02-29', {date}, INTERVAL '1000' YEAR)
sequence({date}, {date})
sequence({date}, {date}, INTERVAL '1' MONTH)
sequence(TIMESTAMP'2024-02-29 00:00:00', {ts}, INTERVAL '100000' YEAR)
sequence(TIMESTAMP'2024-02-29 00:00:00', {ts}, INTERVAL '-100000' YEAR)
sequence({ts}, {ts}, INTERVAL '1' SECOND)
timestamp_seconds({l})
timestamp_millis({l})
timestamp_micros({l})
timestamp_seconds({i})
timestamp_seconds({d})
timestamp_seconds({f})
timestamp_seconds({p})
timestamp_seconds({r})
timestamp_seconds({s})
CAST({l} AS TIMESTAMP)
CAST({d} AS TIMESTAMP)
from_unixtime({l})
from_unixtime({l}, 'yyyy')
unix_seconds({ts})
unix_millis({ts})
unix_micros({ts})
unix_timestamp({ts})
to_unix_timestamp({ts})
unix_date({date})
date_from_unix_date({i})
CAST({ts} AS BIGINT)
CAST({ts} AS INT)
CAST({ts} AS DOUBLE)
CAST({ts} AS DATE)
CAST({date} AS TIMESTAMP)
CAST({ts} AS TIMESTAMP_NTZ)
CAST({ts} AS DECIMAL(38, 6))
date_add({date}, {i})
date_sub({date}, {i})
date_add({date}, {h})
date_sub({date}, {b})
{date} + {i}
{date} - {i}
add_months({date}, {i})
{date} + {ym}
{date} - {ym}
{ts} + {ym}
{ts} - {ym}
{ts} + {dt}
{ts} - {dt}
{date} + {dt}
{ts} - TIMESTAMP'1970-01-01 00:00:00'
TIMESTAMP'1970-01-01 00:00:00' - {ts}
TIMESTAMP'2024-01-01 00:00:00' - {ts}
{date} - DATE'2024-01-01'
DATE'0001-01-01' - {date}
datediff({date}, DATE'9999-12-31')
datediff(DATE'9999-12-31', {date})
months_between({ts}, TIMESTAMP'2024-01-31 00:00:00')
months_between({date}, DATE'2024-01-31', false)
last_day({date})
next_day({date}, 'MON')
dayofweek({date})
weekday({date})
weekofyear({date})
dayofyear({date})
year({date})
year({ts})
month({ts})
quarter({date})
extract(YEAROFWEEK FROM {date})
extract(SECOND FROM {ts})
hour({ts})
second({ts})
trunc({date}, 'YEAR')
trunc({date}, 'MONTH')
trunc({date}, 'WEEK')
trunc({date}, 'QUARTER')
make_date({i}, 1, 1)
make_date({i}, {j}, 1)
make_date(2024, 2, {i})
make_timestamp({i}, 1, 1, 0, 0, 0)
make_timestamp(2024, {i}, 1, 0, 0, 0)
make_timestamp(2024, 1, 1, {i}, 0, 0)
make_timestamp(2024, 1, 1, 0, {i}, 0)
make_timestamp(2024, 1, 1, 0, 0, {i})
make_timestamp(2024, 1, 1, 0, 0, {s})
make_timestamp(2024, 1, 1, 0, 0, {d})
make_timestamp_ntz({i}, 1, 1, 0, 0, 0)
make_ym_interval({i}, {j})
make_ym_interval({i})
make_dt_interval({i}, {j})
make_dt_interval({i}, {i}, {i}, {s})
make_dt_interval(0, {i}, {j})
make_dt_interval(0, 0, {i}, 0.5)
make_dt_interval(0, 0, 0, {s})
make_dt_interval(0, 0, 0, {r})
make_dt_interval(0, 0, 0, {p})
make_dt_interval(106751991, 4, 0, {w})
make_interval({i})
make_interval({i}, {j})
make_interval(0, {i}, {j})
make_interval(0, 0, {i}, {j})
make_interval(0, 0, 0, 0, {i}, {j}, 0)
make_interval(0, 0, 0, 0, {i}, {i}, {s})
{ym} + {ym}
{ym} - {ym}
-{ym}
abs({ym})
sign({ym})
{ym} * {j}
{ym} * {m}
{ym} / {j}
{ym} / {m}
{ym} * {d}
{ym} / {d}
{ym} * {f}
{ym} * {p}
{ym} * {r}
{ym} / {r}
{ym} / {q}
{ym} * 1.5
{ym} / 2
{ym} / 0.5
{dt} + {dt}
{dt} - {dt}
-{dt}
abs({dt})
sign({dt})
{dt} * {j}
{dt} * {m}
{dt} / {j}
{dt} / {m}
{dt} * {d}
{dt} / {d}
{dt} * {f}
{dt} * {p}
{dt} * {r}
{dt} / {r}
{dt} / {q}
{dt} * 1.5
{dt} / 2
{dt} / 0.5
CAST({ym} AS INT)
CAST({ym} AS TINYINT)
CAST({ym} AS STRING)
CAST({ym} AS INTERVAL YEAR)
CAST({dt} AS INTERVAL DAY)
CAST({dt} AS INTERVAL HOUR)
CAST({dt} AS STRING)
CAST({dt} AS INTERVAL SECOND)
extract(DAY FROM {dt})
extract(SECOND FROM {dt})
extract(YEAR FROM {ym})
extract(MONTH FROM {ym})
CAST({i} AS INTERVAL YEAR)
CAST({i} AS INTERVAL MONTH)
CAST({l} AS INTERVAL MONTH)
CAST({l} AS INTERVAL DAY)
CAST({i} AS INTERVAL DAY)
CAST({i} AS INTERVAL SECOND)
CAST({l} AS INTERVAL SECOND)
CAST({p} AS INTERVAL SECOND)
CAST({s} AS INTERVAL SECOND)
CAST({s} AS INTERVAL MONTH)
timestampadd(YEAR, {i}, {ts})
timestampadd(QUARTER, {i}, {ts})
timestampadd(MONTH, {i}, {ts})
timestampadd(WEEK, {i}, {ts})
timestampadd(DAY, {i}, {ts})
timestampadd(HOUR, {i}, {ts})
timestampadd(MINUTE, {i}, {ts})
timestampadd(SECOND, {i}, {ts})
timestampadd(MILLISECOND, {i}, {ts})
timestampadd(MICROSECOND, {i}, {ts})
timestampadd(SECOND, {l}, {ts})
timestampadd(MICROSECOND, {l}, {ts})
timestampdiff(YEAR, {ts}, TIMESTAMP'2024-02-29 00:00:00')
timestampdiff(QUARTER, {ts}, TIMESTAMP'2024-02-29 00:00:00')
timestampdiff(MONTH, TIMESTAMP'2024-02-29 00:00:00', {ts})
timestampdiff(WEEK, {ts}, TIMESTAMP'2024-02-29 00:00:00')
timestampdiff(DAY, {ts}, TIMESTAMP'2024-02-29 00:00:00')
timestampdiff(SECOND, {ts}, TIMESTAMP'2024-02-29 00:00:00')
timestampdiff(MILLISECOND, {ts}, TIMESTAMP'2024-02-29 00:00:00')
timestampdiff(MICROSECOND, {ts}, TIMESTAMP'2024-02-29 00:00:00')
timestampdiff(MICROSECOND, TIMESTAMP'2024-02-29 00:00:00', {ts})
timestampdiff(HOUR, {ts}, {ts})
date_trunc('YEAR', {ts})
date_trunc('QUARTER', {ts})
date_trunc('MONTH', {ts})
date_trunc('WEEK', {ts})
date_trunc('DAY', {ts})
date_trunc('HOUR', {ts})
date_trunc('SECOND', {ts})
date_trunc('MILLISECOND', {ts})
date_trunc('MICROSECOND', {ts})
date_format({ts}, 'yyyy')
from_utc_timestamp({ts}, '+14:00')
to_utc_timestamp({ts}, '+14:00')
window({ts}, '1 day')
try_add({date}, {i})
try_add({ts}, {dt})
try_subtract({ts}, {dt})
element_at({arr}, {i})
try_element_at({arr}, {j})
get({arr}, {j})
{arr}[{j}]
slice({arr}, {j}, 2)
slice({arr}, 1, {j})
slice({arr}, {i}, {j})
array_insert({arr}, 2, 9)
array_insert({arr}, -2, 9)
array_repeat(1, {b})
array_position({arr}, 7)
elt({j}, 'a', 'b')
substring('hello', {i}, {j})
substring('hello', {j})
substring({str}, {j}, {i})
left('hello', {i})
right('hello', {i})
substring_index('a.b.c', '.', {j})
substring(CAST('hello' AS BINARY), {i}, {j})
overlay('hello' PLACING 'x' FROM {j} FOR {i})
overlay('hello' PLACING 'x' FROM {i})
locate('l', 'hello', {i})
lpad('hello', {b}, 'x')
rpad('hello', {b}, 'x')
lpad('hello', -2147483648, 'x')
repeat('ab', {b})
repeat('', {i})
repeat('a', -2147483648)
space({b})
space(-2147483648)
split('a,b,c', ',', {j})
split_part('a.b.c', '.', {i})
regexp_extract('abc', '(b)', {b})
instr('hello', 'l')
chr({l})
char({i})
format_number({l}, 2)
format_number({d}, 2)
format_number({p}, 3)
format_number({w}, {j})
ceil({l} / 2)
greatest({l}, {m})
hash({l})
xxhash64({d})
crc32(CAST({l} AS STRING))
mod({l}, {m})
bround({l} * 1BD, -3)
nanvl({d}, 1)
pow({l}, 2)
sqrt({l})
cbrt({l})
log2({d})
rint({d})
CAST({d} AS BIGINT)
CAST({d} AS INT)
CAST({d} AS DECIMAL(38, 10))
CAST({f} AS DECIMAL(10, 2))
CAST({str} AS BIGINT)
CAST({str} AS INT)
date_diff(DATE'1970-01-01', {date})
uniform(1, 2, 3)
hours({ts})
try_make_timestamp({i}, 1, 1, 0, 0, 0)
try_make_interval({i}, {j})
try_to_timestamp({str})
to_number({str}, '9999')
to_char({s}, 'S9999999999999999.99')
try_mod({l}, {m})
""".strip().splitlines()

#: Expressions by group.
EXPRESSIONS: dict[str, list[str]] = {
    "roundings": list(_roundings()),
    "operators": list(_operators()),
    "others": _OTHERS,
}
