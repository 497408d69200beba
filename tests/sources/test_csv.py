"""CSV files come out as Spark reads them."""

from __future__ import annotations

import gzip
import random

import pyarrow as pa
import pytest

from kquery_spark.errors import ExecutionError, SourceError, Unsupported
from kquery_spark.logical import Scan
from kquery_spark.sources import lines as lines_module
from kquery_spark.sources.csv.options import csv_options
from kquery_spark.sources.csv.source import csv_source
from kquery_spark.sources.csv.tokens import LineTokenizer
from kquery_spark.stages.serialization import from_bytes, to_bytes
from kquery_spark.types import names as t
from tests.sources.compare import assert_same, read_all, written
from tests.sources.csv_files import TYPES, compare, cut_by, schema_of  # noqa: F401

ODD_LINES = [
    "1,a,2.5",
    '2,"b, c",3',
    '3,"say \\"x\\"",4',
    '4,"two ""quotes""",5',
    '5,"",',
    "6,,",
    "",
    "   ",
    "7,short",
    "8,long,1.5,extra,more",
    '9,"not closed,1',
    "notanumber,x,y",
    '10,mid"quote,1',
    ' 11, "blank" , 1',
    "+12,plus,+1.5",
    "2147483648,big,1e400",
    "-0,zero,-0.0",
    "13,NaN,NaN",
    "14,Inf,Inf",
    "15,-Inf,-Inf",
    "16,inf,inf",
    "17,nan,nan",
    "18,Infinity,Infinity",
    "0x1F,hex,0x1p3",
    "19,ünïcödé 漢字,1d",
    "20,tab\there,1.5f",
    "#21,hash,1",
    "22,back\\slash,.5",
    '23,"back\\\\slash",5.',
    "24,NULL,NA",
]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"escape": '"'},
        {"nullValue": "NA"},
        {"nullValue": "NULL", "emptyValue": "E"},
        {"comment": "#"},
        {"ignoreLeadingWhiteSpace": True, "ignoreTrailingWhiteSpace": True},
        {"mode": "DROPMALFORMED"},
        {"nanValue": "nan", "positiveInf": "inf", "negativeInf": "-inf"},
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", [None, ["a"], ["c", "b"]], ids=str)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_odd_lines(spark, tmp_path, options, columns, end):
    path = written(tmp_path, end.join(ODD_LINES) + end)
    compare(spark, path, {"a": "int", "b": "string", "c": "double"}, columns, **options)


NUMBERS = [
    "0", "1", "-1", "+1", "127", "128", "-129", "32767", "32768", "2147483647", "2147483648", "9223372036854775807",
    "9223372036854775808", "1.5", "-1.5", "1e3", "1E-3", "+1e+3", ".5", "5.", "1d", "1.5F", "1L", "0x10", "NaN",
    "Inf", "-Inf", "+Inf", "Infinity", "-Infinity", "nan", "1,5", "1_000", "1e400", "-1e400", "1e-400", "4.9e-324",
    "3.4028236e38", "16777217", "0.1", "123456789.123456789", "999.995", "999.994", "-999.995", "12345.67", "1e2",
    "99999999999999999999", "true", "TRUE", "False", "yes", "t", "2019-01-31", "2019-02-30", "2019-1-1",
    "0000-01-01", "9999-12-31", "10000-01-01", "+10000-01-01", "-0001-01-01", "20190131", "2019", "2019-05",
    "1.00000017881393432617187499", "1.00000017881393432617187500", "1.00000017881393432617187501", "0007", "-007",
    "1e5", "12e-1", "1 ", " 1", " 1.5 ", "\t2", " true", " 2019-01-31", "", "٣", "1\u0000",
]  # fmt: skip
TIMES = [
    "2019-01-31 23:59:59", "2019-01-31T23:59:59", "2019-01-31 23:59:59.1", "2019-01-31 23:59:59.123456",
    "2019-01-31 23:59:59.1234567", "2019-01-31 23:59:60", "2019-01-31 24:00:00", "2019-02-29 00:00:00",
    "2019-01-31 23:59:59Z", "2019-01-31 23:59:59+01:00", "2019-01-31 23:59:59 UTC", "2019-01-31", "2019-01", "2019",
    "2019-1-2 3:4:5", "2019-01-31 10", "2019-01-31 10:20", "  2019-01-31 23:59:59  ", "2019-01-31 23:59:59 Europe/Berlin",
    "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.5", "20190131", "x", "", "2019-01-31 23:59:59.",
    "2019-01-31x23:59:59", "2019/01/31 23:59:59",
]  # fmt: skip


@pytest.mark.parametrize("kind", [k for k in TYPES if not k.startswith("timestamp")])
def test_numbers_and_dates(spark, tmp_path, kind):
    lines = "".join(f'"{v}"|x\n' for v in NUMBERS)
    path = written(tmp_path, lines)
    compare(spark, path, {"v": kind, "s": "string"}, ["v"], sep="|")
    if kind == "date":
        compare(spark, path, {"v": kind, "s": "string"}, sep="|", dateFormat="yyyy-MM-dd")


PATTERNS = [
    "dd/MM/yyyy",
    "d-MMM-yy",
    "yyyyMMdd",
    "yyyy-MM-dd HH:mm:ss",
    "MM/dd/yyyy hh:mm:ss a",
    "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "yyyy",
]
PATTERN_STRINGS = [
    "31/01/2019", "29/02/2019", "1-Jan-19", "31-dec-99", "20190131", "2019-01-31", "2019-01-31 23:59:59", "01/31/2019 11:59:59 pm", "01/31/2019 00:59:59 AM",
    "2019-01-31T23:59:59.123", "2019-03-10 02:30:00", "2019-11-03 01:30:00", "2019", "x", "", " 31/01/2019", "31/01/2019 ",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    "strings",
    [PATTERN_STRINGS, PATTERN_STRINGS[:1], PATTERN_STRINGS[2:3], PATTERN_STRINGS[4:5], PATTERN_STRINGS[6:7]],
    ids=len,
)
def test_dates_and_times_by_a_pattern(spark, tmp_path, pattern, strings):
    columns = {"d": "date", "t": "timestamp", "n": "timestamp_ntz", "s": "string"}
    path = written(tmp_path, "".join(f"{text}|{text}|{text}|{i}\n" for i, text in enumerate(strings)))
    options = dict.fromkeys(("dateFormat", "timestampFormat", "timestampNTZFormat"), pattern)
    compare(spark, path, columns, sep="|", **options)
    compare(spark, path, columns, ["t", "n"], sep="|", timestampFormat=pattern, timeZone="America/New_York")


def test_no_types_are_inferred_by_a_pattern(tmp_path):
    with pytest.raises(Unsupported, match="with a schema only"):
        csv_source([str(written(tmp_path, "31/01/2019\n"))], dateFormat="dd/MM/yyyy", inferSchema=True)


@pytest.mark.parametrize("value", NUMBERS)
def test_each_number_is_well_formed_where_spark_says_so(spark, tmp_path, value):
    kinds = [k for k in TYPES if not k.startswith("timestamp")]
    text = "|".join([f'"{value}"'] * len(kinds))
    compare(spark, written(tmp_path, f"{text}\n"), {f"c{i}": k for i, k in enumerate(kinds)}, sep="|")


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize(
    "times", [TIMES, TIMES[:2], TIMES[2:4], [*TIMES[:2], ""]], ids=["all", "plain", "fractions", "nulls"]
)
def test_timestamps(spark, tmp_path, kind, times):
    compare(spark, written(tmp_path, "".join(f"{v}|x\n" for v in times)), {"v": kind, "s": "string"}, sep="|")


def test_timestamps_follow_the_session_time_zone(spark, tmp_path):
    path = written(tmp_path, "2019-03-31 02:30:00,a\n2019-10-27 02:30:00,b\n2088-07-01 00:00:00,c\n")
    zone = "Europe/Berlin"
    source = csv_source([str(path)], pa.schema([("v", t.timestamp(zone)), ("s", t.STRING)]), tz=zone)
    df = spark.read.schema("v timestamp, s string").option("timeZone", zone).csv(str(path))
    expected = sorted(r.u for r in df.selectExpr("unix_micros(v) u").collect())
    assert sorted(read_all(source).column("v").cast(pa.int64()).to_pylist()) == expected


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [{}, {"escape": '"'}, {"nullValue": "N", "emptyValue": "E"}, {"sep": "\t", "quote": "'"}],
    ids=str,
)
def test_random_lines(spark, tmp_path, seed, options):
    rng = random.Random(seed)
    sep, quote = options.get("sep", ","), options.get("quote", '"')
    alphabet = ["a", "7", sep, sep, quote, quote, quote, "\\", " ", "N", "\t"]
    lines = ["".join(rng.choices(alphabet, k=rng.randint(1, 12))) for _ in range(1500)]
    clean = [f"{i}{sep}{quote}x{sep}{i}{quote}{sep}" for i in range(1500)]
    text = "\n".join(line for pair in zip(lines, clean, strict=True) for line in pair)
    ddl = {"a": "string", "b": "string", "c": "string"}
    path = written(tmp_path, text)
    compare(spark, path, ddl, **options)
    compare(spark, path, ddl, ["b"], **options)
    compare(spark, path, ddl, mode="DROPMALFORMED", **options)


def test_fewer_and_more_columns_than_the_files(spark, tmp_path):
    path = written(tmp_path, "1,2,3\n4,5,6\n")
    for ddl in ({"a": "int", "b": "int"}, {"a": "int", "b": "int", "c": "int", "d": "int"}):
        for mode in ("PERMISSIVE", "DROPMALFORMED"):
            compare(spark, path, ddl, mode=mode)
            compare(spark, path, ddl, ["b"], mode=mode)


def test_counting_reads_no_column(spark, tmp_path):
    path = written(tmp_path, "\n".join(ODD_LINES))
    source = csv_source([str(path)], schema_of({"a": "int", "b": "string", "c": "double"}))
    counted = sum(b.num_rows for s in source.splits() for b in source.read(s, []))
    assert counted == spark.read.schema("a int, b string, c double").csv(str(path)).count()


def test_failfast(tmp_path):
    path = written(tmp_path, "1,a\nx,b\n")
    source = csv_source([str(path)], schema_of({"a": "int", "b": "string"}), mode="FAILFAST")
    with pytest.raises(ExecutionError, match="MALFORMED_RECORD_IN_PARSING"):
        read_all(source)
    assert read_all(source, ["b"]).num_rows == 2


def test_multi_line(spark, tmp_path):
    text = 'a,b\n1,"x\ny"\n\n2,"p,q"\n3,\n'
    path = written(tmp_path, text)
    ddl = {"a": "int", "b": "string"}
    compare(spark, path, ddl, header=True, multiLine=True)
    compare(spark, path, header=True, multiLine=True, inferSchema=True)
    compare(spark, path, ddl, header=True)
    compare(spark, written(tmp_path, text.replace("\n", "\r\n"), "w.csv"), ddl, header=True, multiLine=True)


def test_header_of_multi_line_follows_empty_lines_only(spark, tmp_path):
    ddl = {"a": "int", "b": "string"}
    for number, start in enumerate(["\n\n", "\n  \n", " \t\n\n"]):
        path = written(tmp_path, f"{start}a,b\n1,x\n", f"{number}.csv")
        for multi_line in (True, False):
            compare(spark, path, ddl, header=True, multiLine=multi_line)


def test_multi_line_declines_what_it_cannot_cut_as_spark_does(tmp_path):
    source = csv_source(
        [str(written(tmp_path, '1,"a\\"b"\n'))], schema_of({"a": "int", "b": "string"}), multiLine=True
    )
    with pytest.raises(SourceError, match="multiLine"):
        read_all(source)


@pytest.mark.parametrize("size", [1, 7, 50, 1000])
def test_every_line_is_read_once_wherever_the_splits_are(spark, tmp_path, monkeypatch, size):
    monkeypatch.setattr(lines_module, "_SPLIT_BYTES", size)
    text = "id,s\r\n" + "".join(f"{i},{'x' * (i % 13)}\r\n" for i in range(200)) + "200,last"
    source = csv_source([str(written(tmp_path, text))], schema_of({"id": "int", "s": "string"}), header=True)
    assert len(source.splits()) >= len(text) // size
    assert sorted(read_all(source).column("id").to_pylist()) == list(range(201))


def test_compressed(spark, tmp_path):
    path = tmp_path / "f.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,x\n2,y\n"))
    compare(spark, path, {"a": "int", "b": "string"}, header=True)
    (tmp_path / "f.csv.zst").write_bytes(b"")
    with pytest.raises(Unsupported, match="compressed"):
        csv_source([str(tmp_path / "f.csv.zst")])


def test_partition_directories(spark, tmp_path):
    for year, day in ((2019, "2019-01-01"), (2020, "__HIVE_DEFAULT_PARTITION__")):
        directory = tmp_path / f"year={year}" / f"day={day}"
        directory.mkdir(parents=True)
        (directory / "f.csv").write_text("1,a\n2,b\n")
    (tmp_path / "_hidden").mkdir()
    (tmp_path / "_hidden" / "f.csv").write_text("9,z\n")
    df = spark.read.schema("x int, y string").csv(str(tmp_path))
    source = csv_source([str(tmp_path)], schema_of({"x": "int", "y": "string"}))
    assert_same(df, source)
    assert_same(df, source, ["day", "x"])
    assert [source.ranges(s, "year").low for s in source.splits()] == [2019, 2020]


def test_changed_and_missing_files(tmp_path):
    path = written(tmp_path, "1,a\n")
    source = csv_source([str(path)])
    path.write_text("1,a\n2,b\n")
    with pytest.raises(SourceError, match="has changed"):
        read_all(source)
    path.unlink()
    with pytest.raises(SourceError, match="does not exist any more"):
        read_all(source)


def test_bytes_that_are_not_utf8_are_an_error(tmp_path):
    source = csv_source([str(written(tmp_path, b"1,\xff\n"))], schema_of({"a": "int", "b": "string"}))
    with pytest.raises(SourceError, match="UTF-8"):
        read_all(source)
    assert read_all(source, ["a"]).column("a").to_pylist() == [1]


@pytest.mark.parametrize(
    "option",
    [
        {"sep": "||"},
        {"encoding": "latin1"},
        {"dateFormat": "yyyy-MM-dd G"},
        {"timestampFormat": ""},
        {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ssXXX"},
        {"lineSep": ";"},
        {"nope": 1},
    ],
    ids=str,
)
def test_options_that_are_declined(option):
    with pytest.raises(Unsupported):
        csv_options(option)


def test_worked_example_of_quoted_commas(spark, tmp_path):
    text = (
        "id,first_name,last_name,state,job_title,salary\n1,Bill,Hopkins,CA,Manager,12000\n2,Gregg,Langford,CO,Driver,10000\n"
        '3,John,Travis,CO,"Manager, Software",11500\n4,Von,Mill,,Defensive End,11500\n'
    )
    compare(spark, written(tmp_path, text), header=True, inferSchema=True)


def test_tokenizer_examples():
    tokens = LineTokenizer(csv_options({})).tokens
    assert tokens('1,"a\\"b",') == ["1", 'a"b', ""]
    assert tokens('"a"b,c') == ['"a"b', "c"]
    assert tokens('"open,2') == ["open,2"]


def test_sources_travel_in_plans(tmp_path):
    for day in ("2019-01-01", "2019-01-02"):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "f.csv").write_text("1,x\n")
    plan = Scan("t", csv_source([str(tmp_path)], header=False, nullValue="NA"))
    assert from_bytes(to_bytes(plan), Scan) == plan
