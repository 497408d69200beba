"""Functions of CSV strings."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.sources.csv.structs import encoded_parameters
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.strings import c
from tests.functions.parity import Arg, Case

RECORDS = Arg(
    t.STRING,
    (
        "", " ", "  ", "\t", ",", ",,,,", "1", "1,x", "1,x,2.5,true", "x,y,z,w", "-1, y ,NaN,TRUE", '"1","a,b","2",false', '2,"a ""b"" c",1,true', '3,"open', '4,a"b"c,1', '"5"x,y', '6,\\,,\\\\',
        '7,"e\\"f\\\\",1', "8,é😀,1e400", "99999999999,b,-Inf", "+9,b,Infinity", "0x1,b,1_0", " 1,b, 2.5 ,t", "1.0,b,1d", '"",""', '"","",""', "1;b;c", "'1','b'", "#1,b", "2020-01-02,2020-01-02 03:04:05",
        "2020-13-01,2020-01-02T03:04:05.123456Z", "2020-1-2,x", "1582-10-04,0001-01-01T00:00:00Z", "12345.675,0.005,1", "1E2,-0,1", "1,000,2",
    ),
)  # fmt: skip


def from_csv(dtype: pa.DataType, schema: str, options: dict[str, str] | None = None) -> Case:
    def build(args: list[Expr], _: EvalMode, tz: str) -> Expr:
        description = encoded_parameters(options or {}, len(dtype), range(len(dtype)))
        return Call.of("from_csv", *args, Literal(description, t.STRING), tz=tz, dtype=dtype)

    given = "".join(f", '{name}', '{value}'" for name, value in (options or {}).items())
    written = f", map({given[2:]})" if options else ""
    return c("from_csv", RECORDS, sql=f"from_csv({{0}}, '{schema}'{written})", build=build)


def to_csv(arg: Arg) -> Case:
    """TO_CSV of a struct with one field twice."""

    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        struct = Call.of("named_struct", Literal("a", t.STRING), args[0], Literal("b", t.STRING), args[0])
        return Call.of("to_csv", struct, mode=mode, tz=tz)

    return c("to_csv", arg, sql="to_csv(named_struct('a', {0}, 'b', {0}))", build=build, check_nullable=False)


DATES = Arg(t.DATE, tuple(day for day in v.DATES.values if day >= -719_162))
STRINGS = Arg(
    t.STRING,
    ("", " ", "  a  ", "\ta\n", '"', '""', '"a"', 'a"b', "a,b", ",", "\\", "a\\", '\\"', 'a\\,"b', "\n", "a\nb", "a\rb", "\r", "#a", "é 😀", "\x00", "\x01x\x01", "'", ";", " ,", "\nx", " \r\nx y", "\nx\n", " x \n", "\n#a", " #a", "\n,", '\n"x', "\n\x00\nx\ny"),
)  # fmt: skip
CASES: list[Case] = [
    from_csv(pa.struct([("a", t.INT), ("b", t.STRING)]), "a int, b string"),
    from_csv(pa.struct([("a", t.STRING)]), "a string"),
    from_csv(pa.struct([("a", t.STRING), ("b", t.STRING), ("c", t.DOUBLE), ("d", t.BOOL)]), "a string, b string, c double, d boolean"),
    from_csv(pa.struct([("a", t.DATE), ("b", t.timestamp("UTC"))]), "a date, b timestamp"),
    from_csv(pa.struct([("a", t.decimal(7, 2)), ("b", t.decimal(3, 2)), ("c", t.FLOAT)]), "a decimal(7,2), b decimal(3,2), c float"),
    from_csv(pa.struct([("a", t.LONG), ("b", t.TIMESTAMP_NTZ)]), "a bigint, b timestamp_ntz"),
    from_csv(pa.struct([("a", t.INT), ("b", t.STRING)]), "a int, b string", {"sep": ";", "quote": "q"}),
    from_csv(pa.struct([("a", t.INT), ("b", t.STRING)]), "a int, b string", {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}),
    from_csv(pa.struct([("a", t.STRING), ("b", t.STRING)]), "a string, b string", {"nullValue": "1", "emptyValue": "e"}),
    from_csv(pa.struct([("a", t.INT), ("b", t.STRING)]), "a int, b string", {"mode": "FAILFAST"}),
    *(to_csv(arg) for arg in (STRINGS, v.STRINGS, v.INTS, v.DEC, v.DEC38_38, v.PRINTED_DOUBLES, v.PRINTED_FLOATS, DATES, v.NTZ, v.BOOLS)),
]  # fmt: skip
