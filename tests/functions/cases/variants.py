"""Functions of variants, which are made of JSON strings here; ``tests/variants`` has those of files."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions.parity import Arg, Case

STRINGS = Arg(
    t.STRING,
    (
        "", " ", "null", "true", "1", "-1.5", "1e3", "12345678901", "1.50", "99999999999999999999", "0.000000000000000000000000000000000000001", '"x"', '"1"', '"2020-01-02"', '"true"',
        '{"a":1}', '{"a":null}', '{"a":"x","b":[1,{"c":2.5}]}', '{"b":{"a":3}, "a":true}', "[1, 2]", '["a"]', "{}", "[]", '{"a":1,"a":2}', "{'a':1}", '{"a":1}x', '{"a":1', "1x", "[1,]", '"\\u00e9\\n"', '{"\\u0061":7}',
    ),
)  # fmt: skip
PATHS = ("$", "$.a", "$.b[1].c", "$[1]", '$["a"]')
TYPES = (t.BOOL, t.INT, t.LONG, t.DOUBLE, t.decimal(10, 2), t.DATE)


def _parsed(text: Expr, mode: EvalMode) -> Expr:
    return Call.of("parse_json", text, mode=mode)


def get(path: str, dtype: pa.DataType, mode: EvalMode, parses: EvalMode = EvalMode.TRY) -> Case:
    """``[try_]variant_get([try_]parse_json(text), path, type)``."""

    def build(args: list[Expr], _: EvalMode, tz: str) -> Expr:
        variant = _parsed(args[0], parses)
        return Call.of("variant_get", variant, Literal(path, t.STRING), mode=mode, tz=tz, dtype=dtype)

    tries = ["try_" if each is EvalMode.TRY else "" for each in (mode, parses)]
    sql = f"{tries[0]}variant_get({tries[1]}parse_json({{0}}), '{path}', '{t.spark_name(dtype)}')"
    return Case("variant_get" if parses is EvalMode.TRY else "parse_json", sql, (STRINGS,), build)


CASES = [
    *(get(path, dtype, EvalMode.TRY) for path in PATHS for dtype in TYPES),
    *(get(path, t.INT, EvalMode.ANSI) for path in PATHS),
    *(get("$.a", dtype, EvalMode.ANSI, EvalMode.ANSI) for dtype in TYPES),
    Case(
        "is_variant_null",
        "is_variant_null(try_parse_json({0}))",
        (STRINGS,),
        lambda args, mode, tz: Call.of("is_variant_null", _parsed(args[0], EvalMode.TRY)),
    ),
]
