"""Files of JSON lines come out as Spark reads them."""

from __future__ import annotations

import gzip
import json
import random

import pyarrow as pa
import pytest

from kquery_spark import ExecutionContext
from kquery_spark.errors import ExecutionError, PlanError, SourceError, Unsupported
from kquery_spark.frontends.sql import parse_type
from kquery_spark.frontends.sql.analyzer.types import arrow_type
from kquery_spark.kernels.compiled import CompiledLoops
from kquery_spark.logical import Scan
from kquery_spark.sources import lines as lines_module
from kquery_spark.sources.json import maps
from kquery_spark.sources.json.options import JsonOptions, json_options
from kquery_spark.sources.json.source import json_source
from kquery_spark.stages.serialization import from_bytes, to_bytes
from tests.conftest import SPARK_VERSION
from tests.sources.compare import assert_same, read_all, written


def schema_of(ddl: str) -> pa.Schema:
    return pa.schema(list(arrow_type(parse_type(f"struct<{ddl}>"), "UTC")))


def compare(spark, path, ddl=None, columns=None, **options):
    reader = spark.read.options(**options)
    if ddl is not None:
        reader = reader.schema(ddl)
    source = json_source([str(path)], None if ddl is None else schema_of(ddl), **options)
    assert_same(reader.json(str(path)), source, columns)


GOOD = [f'{{"a":{i},"b":"row {i}"}}' for i in range(70)]
ODD_LINES = [
    '{"a":1.10,"b":1.10}', '{"a":1,"b":{"x" : 1.50, "y":"q\\u00e9"}}', '{"a":1,"b":[1, 2]}', '{"a":1,"b":tru}', '{"a":1,"b":"x"',
    '{"a":1,', '{"a":1,"b":', '{"a":1 "b":"x"}', '{"a":1,"b":"x"} trailing', '{"a":1} {"a":2}', '{"a":1}{"a":2,"b":{}', '[{"a":1},{"a":2}]',
    "[]", "[1]", "[null]", "null", "5", '"str"', "x", "{", "}", "{}", "   ", '{"a":tru,"b":"x"}', '{"a":[1,2],"b":"x"}', '{"a":nope,"b":"x"}',
    '{"b":"x","a":01}', '{"b":"x","a":-}', '{"b":"x","a":1.}', '{"b":"x","a":.5}', '{"b":"x","a":+1}', '{"b":"x","a":1e5}',
    '{"b":"x","a":9223372036854775808}', '{"b":"x","a":"1"}', '{"b":"x","a":""}', '{"b":NaN,"a":2}', '{"b":Inf,"a":2}', '{"b":-Inf,"a":2}',
    "{'b':'x\"y\\'z',\"a\":2}", '{b:1,"a":2}', '{"b":"raw\ttab","a":2}', '{"a":2,"b":"raw\ttab"}', '{"b":"\\q","a":2}', '{"a":2,"b":"\\q"}',
    '{"a":2,"b":"\\ud800"}', '{"a":2,"b":"\\ud83d\\ude00"}', '{"a":2,"b":"\\udc00x"}', '{"a":2,"b":"\\/\\b\\f\\n\\r\\t\\\\"}',
    '{"a":2,"a":"x","b":"y"}', '{"a":2,"a":null,"b":"y"}', '{"a":2,"b":"y",}', '{"a":2,"b":"y"]', '{"c":tru,"a":1,"b":"x"}',
    '{"a":1,"b":"x","c":tru}', '{"a":1,"b":"x","c":[1,', '{"a":1,"b":[1,', '{"a":1,"b":"x"}}', '{"a":1,"b":"x","c":}', '{"a":1,"b":}',
    '{"a":,"b":"x"}', '{"a":1,"b":null}', '{"a":1,"b":1E400}', '{"a":1,"b":-0}', '{"a":-0,"b":-0.0}', '{"a":1,"b":"not closed}',
    '{"b":"not closed,"a":1}', '{"a":1,"b":Infinity}', '{"a":1,"b":INF}', '{"a":1,"b":-INF}', '{"a":1,"b":+INF}', '{"a":1,"b":+Infinity}',
    '{"a":1,"b":truex}', '{"a":1x,"b":"y"}', '{"a":1/**/,"b":"y"}', '\x0b{"a":1,"b":"y"}', '{"a":1,\x0c"b":"y"}', '{"a":1,"b":nul}',
    '{"a":1,"b":{"x":1', '{"a":1,"b":{"x":"1', '{"":1,"a":3}', '{"a":1,"b":"x\\u0000y"}', '{"a":1,"b":[1,"x",{"q":null}, true ] , "c":1}',
    '{"a":1;"b":2}', '{"a"=1}', '{"a"}', '{"a":{"b":"inner"},"b":"x"}', '{"A":1,"B":"x"}', '\ufeff{"a":1}', '{"a":\u00a01}', ' {"a":7}', '{"a":7} ',
    '{"a":1,"b":"ünïcödé 漢字 Information: NaN"}', '{"a":1,"b":false}', '{"c":[{"a":5}],"a":6}',
]  # fmt: skip


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_odd_lines(spark, tmp_path, mode, end):
    lines = [*GOOD, *ODD_LINES, "", *GOOD, *ODD_LINES]
    path = written(tmp_path, end.join(lines) + end)
    for columns in (None, ["b"], ["a"]):
        compare(spark, path, "a bigint, b string", columns, mode=mode)
    source = json_source([str(path)], schema_of("a bigint, b string"), mode=mode)
    counted = sum(b.num_rows for s in source.splits() for b in source.read(s, []))
    assert counted == spark.read.schema("a bigint").option("mode", mode).json(str(path)).select().count()


@pytest.mark.parametrize(
    "line",
    ['{"a":1,"b":{"x":1]}', '{"a":1,"b":"x\\u00"}', '{"b":"\\q,"a":2}', '[{"a":1},5]', '[{"a":"x"},{"a":2}]'],
)
def test_lines_of_which_spark_may_read_a_part_are_refused(tmp_path, line):
    source = json_source([str(written(tmp_path, f'{{"a":1}}\n{line}\n'))], schema_of("a bigint, b string"))
    with pytest.raises(SourceError, match=r"lines\.txt, line 2: malformed in a way"):
        read_all(source)


VALUES = [
    "0", "1", "-1", "-0", "127", "128", "200", "255", "256", "-129", "32767", "32768", "2147483647", "2147483648", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "1.5", "-1.5", "1e3", "1E-3", "1e400", "1e-400", "4.9e-324", "3.4028236e38", "16777217", "0.1",
    "123456789.123456789", "999.995", "999.994", "-999.995", "12345.67", "1e2", "99999999999999999999", "12345678901234567890123456789.5",
    "1.00000017881393432617187499", "1.00000017881393432617187500", "1.00000017881393432617187501", "true", "false", "null", "NaN", "Infinity",
    "-Infinity", "+INF", "[]", "{}", "[1]", '{"x":1}', '""', '"1"', '"1.5"', '"1,5"', '"1e2"', '" 1"', '"NaN"', '"INF"', '"+INF"', '"-INF"', '"Infinity"', '"inf"',
    '"nan"', '"true"', '"2019-01-31"', '"2019-02-30"', '"2019-1-1"', '"0000-01-01"', '"9999-12-31"', '"10000-01-01"', '"-0001-01-01"', '"20190131"', '"2019"',
    '"5"', '"-5"', '"17000"', '"+3"', '"2019-05"', '"2019-01-31 23:59:59"', '"2019-01-31T23:59:59"', '"2019-01-31 23:59:59.123456"', '"2019-01-31T23:59:59Z"',
    '"2019-01-31T23:59:59+01:00"', '"2019-01-31 23:59:60"', '"  2019-01-31 23:59:59  "', '"1969-12-31 23:59:59.5"', '"x"', "1548979199", "-5",
]  # fmt: skip
TYPES = (
    "string", "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "date", "timestamp", "timestamp_ntz",
    "decimal(5,2)", "decimal(20,0)", "decimal(38,10)", "array<int>", "struct<x:int>", "array<date>", "struct<x:timestamp>",
)  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_every_value_in_every_type(spark, tmp_path, kind):
    lines = [f'{{"id":{i},"v":{v}}}' for i, v in enumerate(VALUES)]
    path = written(tmp_path, "\n".join([*GOOD, *lines, *GOOD]))
    compare(spark, path, f"id bigint, v {kind}")
    compare(spark, path, f"id bigint, v {kind}", mode="DROPMALFORMED")
    if kind == "date":
        compare(spark, path, "id bigint, v date", dateFormat="yyyy-MM-dd")


@pytest.mark.parametrize("pattern", ["dd/MM/yyyy", "d-MMM-yy", "yyyy-MM-dd HH:mm:ss", "MM/dd/yyyy hh:mm a"])
def test_dates_and_times_by_a_pattern(spark, tmp_path, pattern):
    strings = [
        "31/01/2019",
        "29/02/2019",
        "1-Jan-19",
        "2019-03-10 02:30:00",
        "01/31/2019 11:59 pm",
        "2019-01-31",
        "x",
        "",
    ]
    lines = [f'{{"id":{i},"d":"{text}","t":"{text}","n":"{text}"}}' for i, text in enumerate(strings)]
    path = written(tmp_path, "\n".join([*lines, '{"id":-1,"d":3,"t":4,"n":5}']))
    options = dict.fromkeys(("dateFormat", "timestampFormat", "timestampNTZFormat"), pattern)
    compare(spark, path, "id bigint, d date, t timestamp, n timestamp_ntz", **options)
    compare(spark, path, "id bigint, t timestamp", timestampFormat=pattern, timeZone="America/New_York")


NESTED = [
    '{"s":{"x":1,"y":"a"},"l":[1,2,null],"n":[{"x":1,"d":"2019-01-31"},{"d":"bad","x":2}]}', '{"s":{"x":"bad","y":"kept"},"l":[1,"bad",{"l":5},[3],3]}',
    '{"s":[1],"l":{"x":1},"n":[{"x":"bad"},5]}', '{"s":null,"l":[],"n":[null,{}]}', '{"s":{"y":{"deep":[1,2]},"x":2,"x":3}}', "{}",
    '{"l":[1,2],"l":[3],"m":[[1,2],[3,"x"]]}', '{"m":[[1,2],[],null,[null]],"s":{"x":5}}', '{"n":[{"d":"2019-01-31","x":1}],"s":{"z":0}}',
    '{"t":{"when":["2019-01-31 10:00:00","2020-02-29T00:00:00"]},"p":[1.5,2]}', '{"t":{"when":["nope"]},"p":["3.25",4]}', '{"p":[1.555,12345]}',
]  # fmt: skip
NESTED_DDL = (
    "s struct<x:int,y:string>, l array<int>, n array<struct<x:int,d:date>>, m array<array<int>>, "
    "t struct<when:array<timestamp>>, p array<decimal(5,2)>"
)


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_nested_values(spark, tmp_path, mode):
    usual = json.dumps({"s": {"x": 1}, "l": [1], "n": [{"x": 1, "d": "2019-01-01"}], "m": [[1]], "p": [1.25]})
    path = written(tmp_path, "\n".join([*[usual] * 60, *NESTED, *[usual] * 60]))
    compare(spark, path, NESTED_DDL, mode=mode)


@pytest.mark.parametrize(
    "values",
    [
        "1|2", "1|1.5", "1|9223372036854775808", "9223372036854775808|1.5", "99999999999999999999999999999999999999|1", '1|"x"', '1|""|null',
        "999999999999999999999999999999999999999", "true|1", "true|null", '""|null', '"2019-01-31"', '"2019-01-31 10:00:00"|"2020-01-31"', "[]|null", "[1,1.5]|[]",
        '[1,"x"]', '["",null]', "{}|null", '{"b":1,"a":{"z":[{"y":1}]}}|{"a":{"z":[{"x":true}]},"c":""}', '{"a":1}|5', "[1]|5", "[[1],[2.5]]|[[]]",
        "NaN|1", "Infinity", "1e400|1e18", "9.3e18|1.5", '{"x":{}}|{"y":1}', '[{}]|[{"":1}]', '{"é":1,"Z":2,"a":3,"_":4}', "-0|-0.0", "'x'", "1e5|12e-1",
    ],
)  # fmt: skip
def test_inferred_types(spark, tmp_path, values):
    lines = [f'{{"z":{i},"v":{v}}}' for i, v in enumerate(values.split("|"))]
    usual = '{"z":7,"other":"x"}'
    compare(spark, written(tmp_path, "\n".join([*lines, *[usual] * 40, *lines])))


def test_inference_of_files_with_malformed_lines(spark, tmp_path):
    path = written(tmp_path, '{"a":1}\n{"a":\n{"b":2.5}\n')
    compare(spark, path, mode="DROPMALFORMED")
    with pytest.raises(Unsupported, match=r"lines\.txt, line 2: malformed"):
        json_source([str(path)])
    with pytest.raises(Unsupported, match="an array where types are inferred"):
        json_source([str(written(tmp_path, '[{"a":1}]', "g.json"))])
    with pytest.raises(Unsupported, match="only in case"):
        json_source([str(written(tmp_path, '{"a":1,"A":2}', "h.json"))])


@pytest.mark.parametrize("line", ['{"a":1,"a":2}', '{"s":{"x":1,"x":2}}', '{"s":[{"x":1,"X":2}]}'])
def test_tables_with_a_name_twice(spark, tmp_path, line):
    """Spark refuses them, or takes names that differ in case for one."""
    path = written(tmp_path, line)
    with pytest.raises(Exception, match="COLUMN_ALREADY_EXISTS"):
        spark.read.json(str(path))
    with pytest.raises(Unsupported):
        json_source([str(path)])


@pytest.mark.parametrize("ddl", ["a int, A int", "s struct<x:int,X:int>", "s array<struct<x:int,x:int>>"])
def test_schemas_with_a_name_twice(spark, tmp_path, ddl):
    path = written(tmp_path, "{}")
    with pytest.raises(Exception, match="COLUMN_ALREADY_EXISTS"):
        spark.read.schema(ddl).json(str(path))
    with pytest.raises(PlanError, match="COLUMN_ALREADY_EXISTS"):
        json_source([str(path)], schema_of(ddl))


def test_failfast_names_file_and_line(tmp_path):
    path = written(tmp_path, '{"a":1,"b":"x"}\n\n{"a":"x","b":"y"}\n')
    source = json_source([str(path)], schema_of("a int, b string"), mode="FAILFAST")
    with pytest.raises(ExecutionError, match=r"MALFORMED_RECORD_IN_PARSING.*lines\.txt, line 3"):
        read_all(source)
    assert read_all(source, ["b"]).num_rows == 2


LONG = "x" * 50_001


@pytest.mark.parametrize(
    "name",
    [LONG, "\\u0041" + LONG, '\\"'.join([LONG[:25_000]] * 3), LONG + "\\\\"],
    ids=["plain", "escaped letter", "escaped quotes", "escaped backslash"],
)
def test_names_longer_than_jackson_reads_are_refused(spark, tmp_path, name):
    path = written(tmp_path, f'{{"a":1}}\n{{"{name}" : 1,"a":2}}\n')
    if SPARK_VERSION >= (4, 0):  # before, Spark's Jackson has no limit
        assert spark.read.schema("a int").json(str(path)).collect() == [(1,), (None,)]
    with pytest.raises(
        SourceError, match="line 2: JSON names of more than 50000 characters are not supported"
    ):
        read_all(json_source([str(path)], schema_of("a int")))


def test_long_values_and_short_names(spark, tmp_path):
    escaped = '\\\\\\"'.join([LONG] * 3)
    lines = [
        f'{{"{LONG[:-1]}":1,"a":2}}',
        f'{{"a":2,"b":"{LONG}"}}',
        f'{{"b":"{LONG}:", "a":3}}',
        f'{{"b":"{escaped}","a":4}}',
    ]
    compare(spark, written(tmp_path, "\n".join(lines)), "a int, b string")


@pytest.mark.parametrize("end", ["}", '\\"}', "\\"], ids=["quotes", "a quote", "a backslash"])
def test_a_long_string_without_an_end(spark, tmp_path, end):
    lines = ['{"b":"x","a":1}', '{"a":2,"b":"' + ("x" * 9 + '\\"') * 8_000 + end, '{"a":3}']
    compare(spark, written(tmp_path, "\n".join(lines)), "a int, b string")


def random_value(rng: random.Random, depth: int) -> object:
    kind = rng.randrange(9 if depth else 6)
    if kind < 6:
        return [None, rng.randint(-9, 9), rng.random() * 1e6, rng.choice(["", "a", "é\n\"'", "2019-01-31"]), True, rng.randint(-(2**70), 2**70)][kind]  # fmt: skip
    if kind == 6:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return {rng.choice("abc"): random_value(rng, depth - 1) for _ in range(rng.randrange(3))}


@pytest.mark.parametrize("seed", range(3))
def test_random_documents(spark, tmp_path, seed):
    rng = random.Random(seed)
    lines = []
    for _ in range(400):
        document = {name: random_value(rng, 3) for name in "abc" if rng.random() < 0.8}
        lines.append(json.dumps(document, ensure_ascii=rng.random() < 0.5))
    path = written(tmp_path, "\n".join(lines))
    compare(spark, path)
    compare(spark, path, "a struct<a:bigint,b:array<string>>, b double, c array<struct<a:string,c:date>>")


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_every_line_is_read_once_wherever_the_splits_are(tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines_module, "_SPLIT_BYTES", size)
    text = "".join(f'{{"id":{i},"s":"{"x" * (i % 13)}"}}\r\n' for i in range(200)) + '{"id":200}'
    source = json_source([str(written(tmp_path, text))], schema_of("id int, s string"))
    assert len(source.splits()) >= len(text) // size
    assert sorted(read_all(source).column("id").to_pylist()) == list(range(201))


def test_compressed_and_partitioned(spark, tmp_path):
    for year in (2019, 2020):
        (tmp_path / f"year={year}").mkdir()
        (tmp_path / f"year={year}" / "f.json.gz").write_bytes(gzip.compress(b'{"b":1,"a":"x"}\n{"a":"y"}\n'))
    compare(spark, tmp_path)
    compare(spark, tmp_path, columns=["year", "b"])
    source = json_source([str(tmp_path)])
    assert [source.ranges(s, "year").low for s in source.splits()] == [2019, 2020]
    assert len(source.splits()) == 2
    with pytest.raises(Unsupported, match="compressed"):
        json_source([str(written(tmp_path, b"", "f.json.zst"))])


def test_bytes_that_are_not_utf8_are_an_error(tmp_path):
    path = written(tmp_path, b'{"a":"x"}\n{"a":"\xff"}\n')
    with pytest.raises(SourceError, match=r"lines\.txt, line 2: text that is not UTF-8"):
        read_all(json_source([str(path)], schema_of("a string")))


@pytest.mark.parametrize(
    "option",
    [{"multiLine": True}, {"encoding": "UTF-8"}, {"dateFormat": "dd.MM.yyyy G"}, {"timestampFormat": "yyyy XXX"}, {"lineSep": ";"}, {"nope": 1}],
    ids=str,
)  # fmt: skip
def test_options_that_are_declined(option):
    with pytest.raises(Unsupported):
        json_options(option)


@pytest.mark.parametrize("ddl", ["m map<string,int>", "b binary", "_corrupt_record string"])
def test_columns_that_are_declined(tmp_path, ddl):
    with pytest.raises(Unsupported):
        json_source([str(written(tmp_path, "{}"))], schema_of(ddl))


def test_sources_travel_in_plans(tmp_path):
    plan = Scan("t", json_source([str(written(tmp_path, '{"a":[1],"b":{"c":"x"}}'))]))
    assert from_bytes(to_bytes(plan), Scan) == plan


def test_a_context_registers_json(tmp_path):
    path = written(tmp_path, '{"id":1,"tags":["x","y"]}\n{"id":2}\n')
    ctx = ExecutionContext()
    ctx.register_json("t", path)
    ctx.register_json("u", path, schema="id int, tags array<string>")
    for table in "tu":
        assert ctx.sql(f"SELECT id, tags[0] AS first FROM {table} ORDER BY id").to_arrow().to_pylist() == [
            {"id": 1, "first": "x"},
            {"id": 2, "first": None},
        ]


def test_entries_of_maps_are_the_same_with_and_without_loops(
    loops: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    strings = pa.array(
        ['{"a":1,"b":null}', "[1]", '{"\\u0061":\n2}', "{}", "nul", '{"a": 1 , "b" : 2} x', "", '{"c":"x"}']
    )
    dtype = pa.map_(pa.string(), pa.int32())
    want = [[("a", 1), ("b", None)], None, [("a", 2)], [], None, [("a", 1), ("b", 2)], None, None]
    assert maps.map_rows(strings, dtype, JsonOptions(exact_strings=False)).to_pylist() == want
    monkeypatch.setattr(maps, "JSON_LOOPS", CompiledLoops("no_such_module"))
    assert maps.map_rows(strings, dtype, JsonOptions(exact_strings=False)).to_pylist() == want
    with pytest.raises(Unsupported, match="a name twice"):
        maps.map_rows(pa.array(['{"a":1,"a":2}']), dtype, JsonOptions(exact_strings=False))
