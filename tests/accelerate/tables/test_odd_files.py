"""Files of odd shapes: the engine reads them as Spark does, or leaves them to Spark, by plan and not by accident."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.sources.csv.source import csv_source
from tests.accelerate.checks import check
from tests.conftest import SPARK_VERSION

CASES = {
    "fields in other letters": ("s struct<userid:bigint>", pa.array([{"userId": 1}, {"userId": 2}])),
    "elements in other letters": ("s array<struct<X:bigint>>", pa.array([[{"x": 1}], [{"x": 2}]])),
    "fields of two letter cases": ("s struct<a:bigint>", pa.array([{"a": 1, "A": 2}])),
    "missing fields": ("s struct<b:int,a:bigint>", pa.array([{"a": 1}, {"a": None}])),
    "wider fields": ("s struct<a:bigint>", pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))),
    "wider elements": ("s array<double>", pa.array([[1.5], None, []], pa.list_(pa.float32()))),
    "elements as text": ("s array<string>", pa.array([[1, 2]], pa.list_(pa.int32()))),
    "fields as text": ("s struct<a:string>", pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))),
    "fields as booleans": ("s struct<a:boolean>", pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))),
    "map values as text": ("s map<string,string>", pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32()))),
    "a map as pairs": (
        "s array<struct<key:string,value:int>>",
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
    ),
    "a struct as a list": ("s array<int>", pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))),
}

READ_BY_THE_ENGINE = {"missing fields"}
if SPARK_VERSION >= (4, 0):  # before, Spark refuses wider numbers
    READ_BY_THE_ENGINE |= {"wider fields", "wider elements"}


def outcome(frame: Any) -> Any:
    try:
        return sorted(map(repr, frame.collect()))
    except Exception as error:
        return type(error).__name__, getattr(error, "getCondition", str)()


def assert_same(frame: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        assert outcome(kquery_plan(frame, when="always")) == outcome(frame)


@pytest.mark.parametrize("name", CASES)
def test_nested_columns_under_another_schema(spark: Any, tmp_path: Path, name: str) -> None:
    schema, column = CASES[name]
    pq.write_table(pa.table({"s": column}), tmp_path / "0.parquet")
    frame = spark.read.schema(schema).parquet(str(tmp_path))
    assert_same(frame)
    assert (kq.explain(frame).coverage == 1.0) == (name in READ_BY_THE_ENGINE)


def test_files_that_spell_a_field_differently(spark: Any, tmp_path: Path) -> None:
    for number, name in enumerate(["userId", "userid"]):
        pq.write_table(pa.table({"s": pa.array([{name: number}])}), tmp_path / f"{number}.parquet")
    assert_same(spark.read.parquet(str(tmp_path)).groupBy("s.userid").count())


def test_nested_times_as_spark_writes_them(spark: Any, tmp_path: Path) -> None:
    rows = spark.sql(
        """SELECT struct(TIMESTAMP'1900-01-01 00:00:00.123456' AS a) s, array(TIMESTAMP'2021-03-28 02:30:00') l,
           map(1, TIMESTAMP_NTZ'2020-01-01 10:00:00') m"""
    )
    rows.write.parquet(str(tmp_path / "t"))
    check(spark.read.parquet(str(tmp_path / "t")), coverage=1.0)


def test_a_file_with_a_column_twice_but_for_case(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "A": [2]}), tmp_path / "0.parquet")
    assert_same(spark.read.schema("a bigint").parquet(str(tmp_path)))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0, 3_000_000], pa.date32()),
        pa.array([0, 1 << 60], pa.timestamp("us")),
        pa.array([b"\xff\xfe", b"a"]).cast(pa.binary()).view(pa.string()),
    ],
    ids=["dates", "times", "bytes"],
)
def test_statistics_beyond_what_python_holds(spark: Any, tmp_path: Path, column: pa.Array) -> None:
    pq.write_table(pa.table({"v": column, "k": [1, 2]}), tmp_path / "0.parquet")
    table = spark.read.parquet(str(tmp_path))
    assert_same(table.groupBy("v").count().select("count"))
    assert_same(table.where("v IS NOT NULL").select("k"))


def test_an_orc_file_of_which_no_column_is_read(spark: Any, tmp_path: Path) -> None:
    pa_orc.write_table(pa.table({"b": [b"x", b"y"], "d": [date(2020, 1, 1), None]}), tmp_path / "0.orc")
    pa_orc.write_table(pa.table({"b": [b"x"]}), tmp_path / "1.orc")
    assert_same(spark.read.schema("b binary, d date").orc(str(tmp_path)).groupBy().count())


def test_lines_that_begin_with_nul_are_rows(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_bytes(b"1,2,3\n\0,x,y\n\0\n4,5,6\n")
    assert_same(spark.read.schema("a string, b string, c string").csv(str(tmp_path)))
    assert_same(spark.read.schema("a string, b string, c string").csv(str(tmp_path)).groupBy().count())


@pytest.mark.parametrize("condition", ["a > 1", "a IS NULL", "a = 3", "b = 'x'"])
def test_json_keys_twice_under_a_filter(spark: Any, tmp_path: Path, condition: str) -> None:
    """Spark drops the line once the first of the values fails; the engine reads it whole."""
    lines = ['{"a":1,"a":2,"b":"x"}', '{"a":1,"a":null}', '{"a":null,"a":3}', '{"a":3,"c":1,"c":2}']
    (tmp_path / "0.json").write_text("\n".join(lines))
    frame = spark.read.schema("a int, b string").json(str(tmp_path))
    assert_same(frame)
    filtered = frame.where(condition)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kq.FallbackWarning)
        assert outcome(kquery_plan(filtered, when="always")) == outcome(filtered)


@pytest.mark.parametrize("pattern", ["YYYY-MM-DD", "yyyy-mm-dd", "yyyy-MM-dd"])
def test_letters_of_a_json_date_format_have_a_case(spark: Any, tmp_path: Path, pattern: str) -> None:
    (tmp_path / "0.json").write_text('{"d":"2020-03-04"}\n')
    assert_same(spark.read.schema("d date").option("dateFormat", pattern).json(str(tmp_path)))


@pytest.mark.parametrize("directory", ["1", "1.10", "1.5"])
def test_directories_of_decimals_with_other_places(spark: Any, tmp_path: Path, directory: str) -> None:
    (tmp_path / f"p={directory}").mkdir()
    pq.write_table(pa.table({"v": [1]}), tmp_path / f"p={directory}" / "0.parquet")
    assert_same(spark.read.schema("v bigint, p decimal(5,1)").parquet(str(tmp_path)).groupBy("p").count())


def parquet_file(spark: Any, path: Path, schema: str, rows: int, fill: Callable[[Any, int], None]) -> None:
    """A file of a schema that Arrow does not write, by the writer that Spark has."""
    parquet = spark._jvm.org.apache.parquet
    message = parquet.schema.MessageTypeParser.parseMessageType(schema)
    target = spark._jvm.org.apache.hadoop.fs.Path(str(path))
    writer = parquet.hadoop.example.ExampleParquetWriter.builder(target).withType(message).build()
    groups = parquet.example.data.simple.SimpleGroupFactory(message)
    for row in range(rows):
        group = groups.newGroup()
        fill(group, row)
        writer.write(group)
    writer.close()


@pytest.mark.parametrize("full", [False, True])
def test_a_list_without_a_group_is_never_null(spark: Any, tmp_path: Path, full: bool) -> None:
    def fill(group: Any, row: int) -> None:
        group.append("id", row)
        for element in range(row % 3 if full else 0):
            group.append("l", element)

    schema = "message m { required int32 id; repeated int32 l; }"
    parquet_file(spark, tmp_path / "0.parquet", schema, 5, fill)
    table = spark.read.parquet(str(tmp_path))
    check(table.where("l IS NOT NULL").selectExpr("id", "size(l)"), coverage=1.0)
    check(table.where("l IS NULL"), coverage=1.0)


def test_short_decimals_in_bytes_fall_back_to_spark(spark: Any, tmp_path: Path) -> None:
    def fill(group: Any, row: int) -> None:
        group.append("d", spark._jvm.org.apache.parquet.io.api.Binary.fromConstantByteArray(bytes([row])))

    parquet_file(spark, tmp_path / "0.parquet", "message m { required binary d (DECIMAL(2,1)); }", 5, fill)
    assert_same(spark.read.parquet(str(tmp_path)))
    context = kq.ExecutionContext()
    context.register_parquet("t", tmp_path)
    with pytest.raises(Unsupported, match="in bytes, which Spark does not read"):
        context.sql("SELECT * FROM t WHERE d > 0").collect()
    assert context.sql("SELECT count(*) AS n FROM t").collect() == [{"n": 5}]


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "orc"])
@pytest.mark.parametrize("glob", ["*", "year=201?", "year=*/month=*", "*/*/*"])
def test_globs_of_partition_directories(spark: Any, tmp_path: Path, kind: str, glob: str) -> None:
    rows = spark.sql("SELECT * FROM VALUES (1L, 2019, 1), (2L, 2020, 1), (3L, 2020, 2) AS t(a, year, month)")
    rows.write.partitionBy("year", "month").option("header", True).format(kind).save(str(tmp_path / "t"))
    context = kq.ExecutionContext()
    register = getattr(context, f"register_{kind}")
    try:
        read = spark.read.option("header", True).option("inferSchema", True)
        expected = read.format(kind).load(str(tmp_path / "t" / glob)).toArrow()
    except Exception as error:
        assert "CONFLICTING_DIRECTORY_STRUCTURES" in str(error)
        with pytest.raises(SourceError, match="CONFLICTING_DIRECTORY_STRUCTURES"):
            register("t", tmp_path / "t" / glob)
        return
    register("t", tmp_path / "t" / glob)
    actual = context.table("t").to_arrow()
    assert actual.schema.names == expected.schema.names
    assert sorted(map(repr, actual.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_a_field_whose_path_is_the_name_of_another_column(spark: Any, tmp_path: Path) -> None:
    columns = {"a.b": [1, 2, 3], "a": [{"b": 10}, {"b": 20}, {"b": None}]}
    pq.write_table(pa.table(columns), tmp_path / "0.parquet", row_group_size=1)
    table = spark.read.parquet(str(tmp_path))
    assert_same(table.where("`a.b` = 2"))
    assert_same(table.selectExpr("`a.b` + 0 AS c").where("c = 2"))
    assert_same(table.where("a.b = 20").groupBy("a.b").count())
    context = kq.ExecutionContext()
    context.register_parquet("t", tmp_path)
    for column in columns:
        with pytest.raises(Unsupported, match="have the same path, which Spark mixes up"):
            context.sql(f"SELECT * FROM t WHERE `{column}` IS NOT NULL AND `a.b` = 2").to_arrow()


@pytest.mark.parametrize(
    ("bits", "digits"),
    [(8, 3), (16, 3), (16, 5), (32, 9), (32, 10), (64, 10), (64, 19), (64, 20)],
)
def test_integers_as_decimals(spark: Any, tmp_path: Path, bits: int, digits: int) -> None:
    numbers = pa.array([1, -100], pa.from_numpy_dtype(f"int{bits}"))
    pq.write_table(pa.table({"n": numbers}), tmp_path / "0.parquet")
    assert_same(spark.read.schema(f"n decimal({digits},0)").parquet(str(tmp_path)).groupBy("n").count())


@pytest.mark.parametrize(
    "column", ["optional binary x (ENUM);", "optional group g { optional int96 x; }"], ids=["enum", "int96"]
)
def test_columns_that_a_context_has_no_type_for(spark: Any, tmp_path: Path, column: str) -> None:
    parquet_file(spark, tmp_path / "0.parquet", f"message m {{ {column} }}", 1, lambda group, row: None)
    with pytest.raises(Unsupported):
        kq.ExecutionContext().register_parquet("t", tmp_path)


@pytest.mark.parametrize("directory", ["1e3", "1.", "15e-1"])
def test_directories_of_numbers_that_are_decimals(spark: Any, tmp_path: Path, directory: str) -> None:
    for number in (directory, "2.5"):
        (tmp_path / f"p={number}").mkdir()
        pq.write_table(pa.table({"v": [1]}), tmp_path / f"p={number}" / "0.parquet")
    context = kq.ExecutionContext()
    if spark.read.parquet(str(tmp_path)).schema["p"].dataType.simpleString() == "double":
        context.register_parquet("t", tmp_path)
        assert dict(context.table("t").dtypes)["p"] == "double"
    else:
        with pytest.raises(Unsupported):
            context.register_parquet("t", tmp_path)


@pytest.mark.parametrize(("codec", "coverage"), [("lz4", 1.0), ("lzo", 0.0)])
def test_early_orc_dates_need_a_footer_that_can_be_read(
    spark: Any, tmp_path: Path, codec: str, coverage: float
) -> None:
    wide = ", ".join(f"id c{i}" for i in range(50))  # so that compressing the footer is worth it
    rows = spark.sql(f"SELECT id, date_add(DATE'1582-09-30', CAST(id AS INT)) d, {wide} FROM range(100)")
    rows.repartition(1).write.option("compression", codec).orc(str(tmp_path / "t"))
    frame = spark.read.orc(str(tmp_path / "t"))
    assert_same(frame)
    assert kq.explain(frame).coverage == coverage
    assert kq.explain(frame.where("id > 50").select("id")).coverage == 1.0


def test_orc_times_in_the_last_second_before_1970(spark: Any, tmp_path: Path) -> None:
    spark.sql("SELECT TIMESTAMP'1969-12-31 23:59:59.999999' t").write.orc(str(tmp_path / "t"))
    assert_same(spark.read.orc(str(tmp_path / "t")))


def test_an_orc_file_with_a_column_twice_but_for_case(spark: Any, tmp_path: Path) -> None:
    pa_orc.write_table(pa.table({"a": [1], "A": [2], "b": [3]}), str(tmp_path / "0.orc"))
    assert_same(spark.read.schema("a bigint").orc(str(tmp_path)))
    assert_same(spark.read.schema("b bigint").orc(str(tmp_path)))


@pytest.mark.parametrize(
    "schema", ["t timestamp_ntz", "s struct<t:timestamp_ntz>", "m map<int,array<timestamp_ntz>>"]
)
def test_times_in_nanoseconds_fall_back_to_spark(spark: Any, tmp_path: Path, schema: str) -> None:
    times = pa.array([1_577_836_800_123_456_789], pa.timestamp("ns"))
    structs = pa.StructArray.from_arrays([times], ["t"])
    maps = pa.MapArray.from_arrays([0, 1], pa.array([1], pa.int32()), pa.ListArray.from_arrays([0, 1], times))
    pq.write_table(pa.table({"b": [1], "t": times, "s": structs, "m": maps}), tmp_path / "0.parquet")
    assert_same(spark.read.schema(schema).parquet(str(tmp_path)))
    assert_same(spark.read.schema(f"b bigint, {schema}").parquet(str(tmp_path)).select("b"))


@pytest.mark.parametrize("schema", [None, "a string, b string", "b string, a string", "a string"])
def test_csv_headers_unlike_the_schema_are_noticed_before_anything_runs(
    spark: Any, tmp_path: Path, schema: str | None
) -> None:
    (tmp_path / "0.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "1.csv").write_text("b,a\np,3\n")
    reader = spark.read.option("header", True).option("enforceSchema", False)
    frame = (reader.schema(schema) if schema else reader).csv(str(tmp_path))
    assert_same(frame)
    assert_same(frame.select("a"))
    assert_same(frame.groupBy().count())


def test_csv_without_a_quote_character(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text('1,"a\n2,b"\n')
    assert_same(spark.read.option("quote", "\0").schema("a int, b string").csv(str(tmp_path)))


def test_csv_words_for_nan_and_infinity_may_be_numbers(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("-999,1\n1,-999\n-999.0,2\n2,2.5\n,3\nNaN,x\n")
    reader = spark.read.options(nanValue="-999", positiveInf="1", negativeInf="2")
    frame = reader.schema("a double, b float").csv(str(tmp_path))
    check(frame, coverage=1.0)
    check(frame.where("isnan(a) OR b > 1").select("b"), coverage=1.0)


def test_unsigned_bigints_are_decimals(spark: Any, tmp_path: Path) -> None:
    numbers = pa.array([2**64 - 1, 5, None, 2**63], pa.uint64())
    nested = pa.array(
        [{"x": [2**64 - 1]}, {"x": None}, None, {"x": [1]}], pa.struct([("x", pa.list_(pa.uint64()))])
    )
    pq.write_table(pa.table({"u": numbers, "s": nested}), tmp_path / "0.parquet", row_group_size=2)
    frame = spark.read.parquet(str(tmp_path))
    check(frame, coverage=1.0)
    for condition in ("u > 9223372036854775807", "u = 18446744073709551615", "u < 6", "u IS NULL"):
        check(frame.where(condition), coverage=1.0)
    check(frame.groupBy().agg({"u": "sum"}), coverage=1.0)
    assert_same(spark.read.schema("u bigint").parquet(str(tmp_path)))
    assert_same(spark.read.schema("u decimal(25,2)").parquet(str(tmp_path)))


def test_a_csv_line_end_that_is_asked_for_is_the_only_one(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_bytes(b"1,a\r\n2,b\r3,c\n")
    for separator in ("\n", "\r", "\r\n"):
        reader = spark.read.option("lineSep", separator).schema("a int, b string")
        assert_same(reader.csv(str(tmp_path)))


def test_what_spark_infers_of_csv_by_its_own_order(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("1.5\n\uff11\n")
    with pytest.raises(Unsupported):
        csv_source([str(tmp_path)], inferSchema=True)
    (tmp_path / "1.csv").write_text("1,2\n")
    with pytest.raises(Unsupported):
        csv_source([str(tmp_path)], multiLine=True)
