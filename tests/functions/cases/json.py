"""Functions of JSON strings."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.expr import Call, Expr, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.types import names as t
from tests.functions import values as v
from tests.functions.cases.strings import c
from tests.functions.parity import Arg, Case, text

DOCUMENTS = Arg(
    t.STRING,
    (
        "", " ", "{}", "[]", "null", "true", "1", '"x"', "'x'", '{"a":1}', "{'a':'b'}", '{"a":{"b":[1,2,{"c":"x"}]}}', '{"a":null,"a":2,"a":3}', '{"a":"x","b":[null,1]}',
        '{"a":{"a":1},"a":{"b":2}}', '[1,[2,3],{"a":4}]', '[{"a":1},{"a":[5,6]}]', '{"a":1.10,"b":1e3,"c":[1.0,-0,-0.0,1e400,0.0001,12345678.5]}',
        '{"a":"\\u00e9\\n\\"\\\\\\/"}', '{"a":["\\u0001\\t\\/ \\ud83d\\ude00 😀"]}', '{"\\u0061":1}', '{"a":"\\ud83d"}', '{"a":"\\ud83d\\ude00"}', '{"a":"é日本😀"}', '{"é":1}',
        '{"a":1', '{"a":1}x', '{"a":1,}', '[1,]', "[1 2]", "{a:1}", '{"a":tru}', "truex", "true;", "1x", "1 x", "01", "1.", "-", "+1", ".5", "NaN", "[NaN]", '{"a":"x\ny"}', '"\\x"',
        '{"a" : [ 1 , 2 ] }', '{"a":123456789012345678901234567890}', "{" * 30, '{"a":' * 30 + "1" + "}" * 30, "[" * 90 + "]" * 90, '{"":5}', "{'a':[1,'b\"c']}", "\t[\n1\r]",
        '[[],[[]],[[[1]]],[{"a":[[],{"a":"😀"}]}]]', '[[{"a":[{"a":1},{"a":[]}]},{"a":[1,[2,"x"]]}],[[3]],{"a":[[4],5]}]', '{"a":[[],[{"a":[]}]],"a":[[1,[2]],{"a":[3,"\\u00e9"]}],"a?b":7}',
        '{"a":[{"a":[1]},{"a":[[2]]},{"b":3}]}', '[ [ 1 , [ ] ] , [ [ 1.50 , -0 ] ] ]',
    ),
)  # fmt: skip
PATHS = (
    "$", "$.a", "$.b", "$.c", "$.a.b", "$.a.b[0]", "$.a.b[2].c", "$[0]", "$[1][1]", "$[1].a[1]", "$['a']", "$.a['b']", "$.é", "$.a.a", "a", "", "$.", "$..a", "$[x]", "$a", "$.a]", "$[-1]", "$[*]", "$[*].a", "$.a[*]", "$.a.b[*]", "$.a.b[*].c", "$[*][1]", "$[*].a[1]", "$.b[*]", "$['a'][*]", "$[0][*]", "$.a[0][*].a",
    "$.*", "$.a.*", "$['*']", "$[*].*", "$.*x", "$['a?b']", "$.a?b",
)  # fmt: skip


def from_json(dtype: pa.DataType, schema: str, records: Arg | None = None) -> Case:
    def build(args: list[Expr], _: EvalMode, tz: str) -> Expr:
        return Call.of("from_json", *args, tz=tz, dtype=dtype)

    return c("from_json", records or RECORDS, sql=f"from_json({{0}}, '{schema}')", build=build)


RECORDS = Arg(
    t.STRING,
    (
        "", "  ", "{}", " {} ", "null", "1", '"x"', '""', "true", "[]", '[{"a":1}]', '{"a":1}', '{"a":1,"b":"x"}', '{"a":"1","b":2}', '{"a":1.5,"b":{"c": [1, 2]}}', '{"a":null,"b":null}',
        '{"b":"é😀\\u00e9\\n"}', '{"a":99999999999,"b":"y"}', '{"A":1,"B":"upper"}', '{"a":1,"a":2}', "{'a':1,'b':'q'}", '{"a":1}x', '{"a":1', "{", "not json", '\n{"a":\n1}\n', '{"b":"x\ny"}',
        '{"c":1.25,"d":true,"e":"2020-01-02","f":"2020-01-02T03:04:05Z","g":[1,2,null],"h":{"i":"x"}}', '{"c":"x","d":1,"e":"x","f":"x","g":1,"h":[]}', '{"c":NaN,"g":[],"h":{}}',
        '{"c":-0.0,"d":false,"e":"1582-10-04","g":[2147483647,-1],"h":{"i":null,"j":3}}', '{"c":1e400}', '{"g":[1,"x"]}', '{"h":{"i":"x","j":"bad"}}', '{"d":"true"}',
    ),
)  # fmt: skip
OBJECTS = Arg(
    t.STRING,
    (
        *(text for text in RECORDS.values if '"a":1,"a"' not in text),
        '{"a":1,"b":null,"c":3}', '{ "a" : 1 , "b" : 2 }x', '{"\\u0061":1,"é":2}', '{"":1}', '{"a":1.5,"b":-2}', '{"a":"NaN","b":NaN,"c":"Infinity"}', '{"a":1,"b":"1"}', '{"a":1e2}',
        '{"a":"2020-01-02","b":null}', '{"a":"2020-01-02T03:04:05Z","b":"2020-01-02"}', '{"a":true,"b":[1, 2],"c":{"d": "x"},"d":"y\\n"}', '{"a":[1,\n2],\t"b":1}', '{"a":123.45,"b":99.999}', '{"a":1,}',
        '{"a":1,"b"}', '{"a":"x","A":"y"}', '{"a":-0.0}', '{"a":12345678901}', '{"a":1} {"b":2}', '{"a":tru}', "{'a':'x','b':2}", '{"a":"\\ud83d"}', '{"a" 1}', '{"a":1 "b":2}',
    ),
)  # fmt: skip
#: Those that the engine reads as strings, too.
WITHOUT_WORDS = Arg(t.STRING, tuple(text for text in OBJECTS.values if ":NaN" not in text))
CASES: list[Case] = [
    from_json(pa.struct([("a", t.INT), ("b", t.STRING)]), "a int, b string"), from_json(pa.struct([("b", t.STRING)]), "b string"),
    from_json(pa.struct([("c", t.DOUBLE), ("d", t.BOOL), ("e", t.DATE), ("f", t.timestamp("UTC"))]), "c double, d boolean, e date, f timestamp"),
    from_json(
        pa.struct([("g", pa.list_(pa.field("element", t.INT))), ("h", pa.struct([("i", t.STRING), ("j", t.LONG)]))]), "g array<int>, h struct<i: string, j: bigint>"
    ),
    from_json(pa.struct([("a", t.LONG), ("c", t.decimal(10, 2))]), "a bigint, c decimal(10, 2)"),
    *[
        from_json(pa.map_(t.STRING, dtype), f"map<string, {name}>", OBJECTS if dtype != t.STRING else WITHOUT_WORDS)
        for dtype, name in ((t.STRING, "string"), (t.INT, "int"), (t.DOUBLE, "double"), (t.DATE, "date"), (t.timestamp("UTC"), "timestamp"), (t.decimal(5, 2), "decimal(5,2)"))
    ],
    *[c("get_json_object", DOCUMENTS, text(path)) for path in PATHS],
    c("json_array_length", DOCUMENTS), c("json_object_keys", DOCUMENTS),
    *[c("json_field", DOCUMENTS, text(name), sql="get_json_object(if(json_object_keys({0}) is null, null, {0}), concat('$.', {1}))") for name in ("b", "c", "d")],
]  # fmt: skip


def to_json(name: str, arg: Arg) -> Case:
    """TO_JSON of a struct with one field."""

    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        struct = Call.of("named_struct", Literal(name, t.STRING), *args)
        return Call.of("to_json", struct, mode=mode, tz=tz)

    return c("to_json", arg, sql=f"to_json(named_struct('{name}', {{0}}))", build=build, check_nullable=False)


DATES = Arg(t.DATE, tuple(day for day in v.DATES.values if day >= -719_162))
CASES += [
    to_json(name, arg)
    for name, arg in {
        "a": v.STRINGS, "b c": v.INTS, "é": v.DEC, "d": v.PRINTED_DOUBLES, "e": v.PRINTED_FLOATS, "f": DATES, "g": v.NTZ, "h": v.BINARIES, "i": v.DEC38_38, "j": v.BOOLS,
    }.items()
]  # fmt: skip


def _map_to_json(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
    return Call.of("to_json", args[0], mode=mode, tz=tz)


CASES += [
    c("to_json", arg, build=_map_to_json, check_nullable=False)
    for arg in (
        Arg(pa.map_(t.STRING, t.LONG), ([], [("a", 1)], [("b", None), ('"é\\', -2)], [("", 3), ("x", 4), ("y\n", 5)])),
        Arg(pa.map_(t.INT, t.STRING), ([], [(1, "x"), (-2, None)], [(3, '"q"')])),
        Arg(pa.map_(t.STRING, pa.list_(t.DOUBLE)), ([], [("a", [1.5, None, float("nan")]), ("b", []), ("c", None)])),
    )
]  # fmt: skip
