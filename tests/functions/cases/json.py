"""Functions of JSON texts."""

from __future__ import annotations

from kquery_spark.types import names as t
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
    ),
)  # fmt: skip
PATHS = (
    "$", "$.a", "$.b", "$.c", "$.a.b", "$.a.b[0]", "$.a.b[2].c", "$[0]", "$[1][1]", "$[1].a[1]", "$['a']", "$.a['b']", "$.é", "$.a.a", "a", "", "$.", "$..a", "$[x]", "$a", "$.a]", "$[-1]",
)  # fmt: skip
CASES: list[Case] = [
    *[c("get_json_object", DOCUMENTS, text(path)) for path in PATHS],
    c("json_array_length", DOCUMENTS), c("json_object_keys", DOCUMENTS),
    *[c("json_field", DOCUMENTS, text(name), sql="get_json_object(if(json_object_keys({0}) is null, null, {0}), concat('$.', {1}))") for name in ("b", "c", "d")],
]  # fmt: skip
