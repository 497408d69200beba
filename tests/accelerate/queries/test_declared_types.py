"""Contexts read Spark's own types from the footers of files that Spark wrote, or decline the file."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import Unsupported
from kquery_spark.types import names as t
from tests.conftest import SPARK_VERSION, exhaustive, settings

FOOTER_KEY = "org.apache.spark.sql.parquet.row.metadata"
INSTANT, WALL_CLOCK = "TIMESTAMP'2024-01-31 12:34:56.789'", "TIMESTAMP_NTZ'2024-01-31 12:34:56.789'"
SUPPORTED = {
    "boolean": "true",
    "byte": "1Y",
    "short": "2S",
    "int": "3",
    "long": "4L",
    "float": "0.5F",
    "double": "0.25D",
    "narrow": "1.25BD",
    "wide": "CAST(1.25 AS DECIMAL(38, 18))",
    "long decimal": "CAST(1.25 AS DECIMAL(15, 3))",
    "string": "'x'",
    "binary": "X'01FF'",
    "date": "DATE'2024-01-31'",
    "instant": INSTANT,
    "wall clock": WALL_CLOCK,
    "day.time": "INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "integers": "array(1, NULL)",
    "full": "array(1, 2)",
    "bytes": "array(1Y, 2Y)",
    "nested": "array(array(DATE'2024-01-31'), NULL)",
    "map": "map('a', 1.5BD, 'b', NULL)",
    "full map": "map(1L, X'01')",
    "struct": "named_struct('A', 1S, 'b', named_struct('c', array('x'), 'd', map(1, named_struct('e', true))))",
    "one field": "array(named_struct('a', 1))",
    "one field or null": "array(named_struct('a', 1), NULL)",
    "ltz within": f"array(named_struct('t', {INSTANT}))",
    "times within": f"map({WALL_CLOCK}, array({WALL_CLOCK}, NULL))",
}

SINCE_4_0 = pytest.mark.skipif(SPARK_VERSION < (4, 0), reason="Spark 3.5 has no such type")


def test_day_time_intervals_in_parquet_files(spark: Any, tmp_path: Path) -> None:
    values = "INTERVAL '1 02:03:04.5' DAY TO SECOND, INTERVAL '-1 00:00:00' DAY TO SECOND"
    path = str(tmp_path / "t")
    rows = spark.sql(f"SELECT posexplode(array({values}, NULL)) AS (n, v)").coalesce(1)
    rows.write.parquet(path)
    context = kq.ExecutionContext(spark)
    context.register_parquet("t", path)
    assert context.table("t").schema == pa.schema({"n": pa.int32(), "v": t.DAY_TIME})
    query = "SELECT n, -v > v AS a, abs(v) = v AS b, max(v) OVER () = v AS c FROM t ORDER BY v DESC"
    spark.read.parquet(path).createOrReplaceTempView("t")
    assert context.sql(query).to_spark().collect() == spark.sql(query).collect()


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("INTERVAL '1' DAY", "interval day, which is not supported"),
        ("INTERVAL '1-2' YEAR TO MONTH", "interval year to month, which is not supported"),
        ("INTERVAL '1' YEAR", "interval year, which is not supported"),
        ("array(INTERVAL '1' DAY)", "interval day"),
        ("map('a', INTERVAL '1-1' YEAR TO MONTH)", "interval year to month"),
        ("named_struct('a', named_struct('b', INTERVAL '1-1' YEAR TO MONTH))", "interval year to month"),
        pytest.param("'a' COLLATE UTF8_LCASE", "a collation", marks=SINCE_4_0),
        pytest.param("array('a' COLLATE UTF8_LCASE)", "a collation", marks=SINCE_4_0),
        pytest.param("named_struct('b', 'a' COLLATE UTF8_LCASE)", "a collation", marks=SINCE_4_0),
        pytest.param(
            "map(1, array(named_struct('b', 'a' COLLATE UTF8_LCASE)))", "a collation", marks=SINCE_4_0
        ),
        pytest.param("parse_json('[1]')", "variant, which is not supported", marks=SINCE_4_0),
        pytest.param("array(parse_json('[1]'))", "variant, which is not supported", marks=SINCE_4_0),
    ],
)
def test_other_types_of_spark_are_declined(spark: Any, tmp_path: Path, expression: str, reason: str) -> None:
    spark.sql(f"SELECT {expression} AS v, 1 AS n").write.parquet(str(tmp_path / "t"))
    with pytest.raises(Unsupported, match=f"the Parquet column v has .*{reason}"):
        kq.ExecutionContext().register_parquet("t", str(tmp_path / "t"))


@pytest.mark.parametrize(
    "expression",
    [
        "array(INTERVAL '1' DAY)",
        "map(INTERVAL '1-1' YEAR TO MONTH, 1)",
        "named_struct('a', named_struct('b', INTERVAL '1' DAY))",
        "array(TIMESTAMP_NTZ'2024-01-31 00:00:00')",
    ],
)
def test_intervals_and_wall_clock_times_inside_of_orc_columns_are_declined(
    spark: Any, tmp_path: Path, expression: str
) -> None:
    spark.sql(f"SELECT {expression} AS v").write.orc(str(tmp_path / "t"))
    with pytest.raises(Unsupported, match="the ORC column v has a part of type"):
        kq.ExecutionContext().register_orc("t", str(tmp_path / "t"))


@pytest.mark.parametrize(
    ("dtype", "value", "reason"),
    [
        ("CHAR(3)", "'a'", r"char\(3\)"),
        ("ARRAY<CHAR(3)>", "array('a')", r"array<char\(3\)>"),
        ("STRUCT<s: MAP<INT, CHAR(3)>>", "struct(map(1, 'a'))", r"struct<s:map<int,char\(3\)>>"),
    ],
)
def test_padded_strings_are_declined(spark: Any, tmp_path: Path, dtype: str, value: str, reason: str) -> None:
    path = str(tmp_path / "t")
    with temporary_table(spark, f"v {dtype}, n VARCHAR(3)") as table:
        spark.sql(f"INSERT INTO {table} VALUES ({value}, 'b')")
        spark.table(table).write.parquet(path)
    if dtype == "CHAR(3)":
        assert spark.read.parquet(path).where("v = 'a'").count() == 1
    with pytest.raises(
        Unsupported, match=f"the Parquet column v has the type {reason}, whose values Spark pads"
    ):
        kq.ExecutionContext().register_parquet("t", path)


@pytest.mark.parametrize("rewritten", [True, False], ids=["rewritten", "as written"])
@pytest.mark.parametrize("legacy", [pytest.param(True, marks=exhaustive), False], ids=["legacy", "standard"])
@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_all_supported_types_are_read_as_declared(
    spark: Any, tmp_path: Path, times: str, legacy: bool, rewritten: bool
) -> None:
    """Contexts read the files that Spark wrote, and copies by pyarrow that store the same columns."""
    path = str(tmp_path / "t")
    columns = {name: value for name, value in SUPPORTED.items() if times != "INT96" or "ltz" not in name}
    written = {
        "spark.sql.parquet.outputTimestampType": times,
        "spark.sql.parquet.writeLegacyFormat": str(legacy).lower(),
    }
    with settings(spark, written), temporary_table(spark, "c VARCHAR(9), p INT, n INT NOT NULL") as table:
        spark.sql(f"INSERT INTO {table} VALUES ('varchar', 1, 2), (NULL, 1, 3)")
        selected = ", ".join(f"{value} AS `{name}`" for name, value in columns.items())
        rows = spark.sql(f"SELECT *, {selected} FROM {table}")
        rows.unionByName(rows.selectExpr("p + 1 AS p", "n"), True).coalesce(1).write.partitionBy("p").parquet(
            path
        )
    if rewritten:
        for file in (tmp_path / "t").glob("*/*.parquet"):
            table_of_file = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
            if times == "INT96":
                # Arrow reads instants as wall-clock times
                i = table_of_file.schema.get_field_index("instant")
                instants = table_of_file.column(i).cast(pa.timestamp("us", "UTC"))
                table_of_file = table_of_file.set_column(i, "instant", instants)
            assert FOOTER_KEY.encode() in table_of_file.schema.metadata
            pq.write_table(table_of_file, file)
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    context = kq.ExecutionContext(spark)
    context.register_parquet("t", path)
    ours, expected = context.table("t").to_spark(), spark.read.parquet(path)
    assert ours.schema.simpleString() == expected.schema.simpleString()
    assert ours.orderBy("p", "n").collect() == expected.orderBy("p", "n").collect()


def test_files_whose_columns_differ_from_the_declared_ones_are_declined(spark: Any, tmp_path: Path) -> None:
    """Spark follows the declaration, which pyarrow copies even if it writes other columns."""
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy.parquet")
    spark.sql("SELECT 1 AS id, struct(2 AS a, 'x' AS b) AS s").coalesce(1).write.parquet(path)
    table = pq.read_table(path)
    other_struct = pa.array([{"b": "x", "a": 2}], pa.struct([("b", pa.string()), ("a", pa.int32())]))
    for other, spark_row, reason in (
        (table.append_column("x", pa.array([7])), [(1, (2, "x"))], "not those of Spark's schema .* with x"),
        (table.rename_columns(["i", "s"]), [(None, (2, "x"))], "not those of Spark's schema .* with id"),
        (table.drop_columns("s"), [(1, None)], "not those of Spark's schema .* with s"),
        (table.select(["s", "id"]), [(1, (2, "x"))], "not those of Spark's schema .* with id"),
        (
            table.set_column(1, "s", other_struct),
            [(1, (2, "x"))],
            "Spark declares the Parquet column s as struct<a:int,b:string>, but it is stored as struct<b:string,a:int>",
        ),
    ):
        pq.write_table(other.replace_schema_metadata(table.schema.metadata), copy)
        assert spark.read.parquet(copy).collect() == spark_row
        with pytest.raises(Unsupported, match=reason):
            kq.ExecutionContext().register_parquet("t", copy)


def test_wall_clock_times_that_are_declared_as_instants_are_declined(spark: Any, tmp_path: Path) -> None:
    """pyarrow reads INT96 times, which are instants, as wall-clock times, and writes them as such."""
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy.parquet")
    spark.sql("SELECT TIMESTAMP'2024-01-01 12:00:00' AS ts").write.parquet(path)
    pq.write_table(pq.read_table(path, coerce_int96_timestamp_unit="us"), copy)
    assert spark.read.parquet(copy).schema["ts"].dataType.typeName() == "timestamp"
    reason = "Spark declares the Parquet column ts as timestamp, but it is stored as timestamp_ntz"
    with pytest.raises(Unsupported, match=reason):
        kq.ExecutionContext().register_parquet("t", copy)


def test_files_that_lack_a_column_with_a_default_are_declined(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    with temporary_table(spark, "a INT", path) as table:
        spark.sql(f"INSERT INTO {table} VALUES (1)")
        spark.sql(f"ALTER TABLE {table} ADD COLUMN b INT DEFAULT 7")
        (old,) = (tmp_path / "t").glob("*.parquet")
        spark.sql(f"INSERT INTO {table} VALUES (2, 3)")
    with_default = next(file for file in (tmp_path / "t").glob("*.parquet") if file != old)
    with_default.rename(with_default.with_name("a.parquet"))
    context = kq.ExecutionContext()
    assert spark.read.parquet(path).orderBy("a").collect() == [(1, 7), (2, 3)]
    with pytest.raises(Unsupported, match=f"{old.name} lacks b, which has a default value"):
        context.register_parquet("t", path)
    old.unlink()
    context.register_parquet("t", path)
    assert context.table("t").to_arrow().to_pydict() == {"a": [2], "b": [3]}


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "1", '"integer"', '{"fields": 1}', '{"fields": [{}]}', '{"fields": ["a"]}'),
        '{"fields": [{"name": "a", "type": "long"}]}',
        '{"type": "array", "elementType": "long", "containsNull": true}',
        *(
            f'{{"type": "struct", "fields": [{{"name": "a", {rest}}}]}}'
            for rest in (
                '"type": "long", "metadata": {}',
                '"type": "long", "nullable": true, "metadata": null',
                '"type": "long", "nullable": true, "metadata": "x"',
                '"type": "long", "nullable": 1',
                '"type": "long", "x": 1',
                '"nullable": true',
                '"type": {"type": "struct", "fields": [{}]}',
                '"type": {"type": "struct", "fields": 1}',
                '"type": {"type": "array", "elementType": "long"}',
                '"type": {"type": "map", "keyType": 1, "valueType": "long", "valueContainsNull": true}',
                '"type": 1',
                '"type": {"type": "udt", "fields": 1}',
            )
        ),
    ],
)
def test_a_malformed_schema_in_the_footer_is_ignored(spark: Any, tmp_path: Path, text: str) -> None:
    path = with_footer(tmp_path, text)
    context = kq.ExecutionContext()
    context.register_parquet("t", path)
    assert context.table("t").to_arrow().to_pydict() == {"a": [1]}
    assert context.table("t").schema == pa.schema({"a": pa.int32()})
    assert spark.read.parquet(path).schema.simpleString() == "struct<a:int>", json.dumps(text)


@pytest.mark.parametrize(
    "rest",
    [
        '"type": "integer"',
        '"type": "integer", "nullable": false',
        '"type": "integer", "nullable": true, "metadata": {"x": [1, 2]}',
        '"type": "integer", "nullable": true, "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}',
    ],
)
def test_schemas_of_all_releases_are_known(spark: Any, tmp_path: Path, rest: str) -> None:
    path = with_footer(tmp_path, f'{{"type": "struct", "fields": [{{"name": "a", {rest}}}]}}')
    context = kq.ExecutionContext()
    context.register_parquet("t", path)
    assert context.table("t").to_arrow().to_pydict() == {"a": [1]}
    assert spark.read.parquet(path).collect() == [(1,)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            '{"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": true}]} x',
            "as bigint, but it is stored as int",
        ),
        (
            '{"type": "struct", "fields": [{"name": "a", "type": "decimal", "nullable": true}]}',
            r"as decimal\(10,0\), but",
        ),
        ("StructType(List(StructField(a,LongType,true)))", "a schema in the form of Spark 1.1"),
    ],
)
def test_schemas_that_only_spark_follows_are_declined(
    spark: Any, tmp_path: Path, text: str, reason: str
) -> None:
    path = with_footer(tmp_path, text)
    assert spark.read.parquet(path).schema.simpleString() != "struct<a:int>"
    with pytest.raises(Unsupported, match=reason):
        kq.ExecutionContext().register_parquet("t", path)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("optional binary v (ENUM);", "v is annotated as Enum"),
        (
            "optional group v (LIST) { repeated group list { optional binary element (ENUM); } }",
            "v.list.element is annotated as Enum",
        ),
        ("optional group v { optional int32 x; optional binary y (ENUM); }", "v.y is annotated as Enum"),
        ("optional fixed_len_byte_array(12) v (INTERVAL);", "v is annotated as"),
        ("optional fixed_len_byte_array(16) v (UUID);", "v is annotated as UUID"),
        ("optional group v { optional int64 x (TIME(MICROS,true)); }", "v.x is annotated as Time"),
        ("optional int64 v (TIME(NANOS,false));", "v is annotated as Time"),
        (
            "optional group v { required binary metadata; required binary value; }",
            "v may have variants, which are not supported",
        ),
    ],
)
def test_annotations_that_arrow_reads_differently_are_declined(
    spark: Any, tmp_path: Path, columns: str, reason: str
) -> None:
    """Spark reads enumerations as strings and groups with the annotation VARIANT as variants; it refuses the others."""
    path = str(tmp_path / "a.parquet")
    parquet = spark._jvm.org.apache.parquet
    schema = parquet.schema.MessageTypeParser.parseMessageType(f"message m {{ {columns} }}")
    file = spark._jvm.org.apache.hadoop.fs.Path(path)
    parquet.hadoop.example.ExampleParquetWriter.builder(file).withType(schema).build().close()
    with pytest.raises(Unsupported, match=f"the Parquet column {reason}"):
        kq.ExecutionContext().register_parquet("t", path)


def with_footer(tmp_path: Path, text: str) -> str:
    """Write a file with a column ``a INT``, and this text as Spark's schema."""
    path = str(tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"a": [1]}, schema=pa.schema({"a": pa.int32()}, metadata={FOOTER_KEY: text})), path
    )
    return path


@contextmanager
def temporary_table(spark: Any, columns: str, path: str | None = None) -> Iterator[str]:
    """Create a Parquet table with a unique name, at a path if given, and drop it at the end."""
    name = f"declared_{uuid.uuid4().hex}"
    location = "" if path is None else f"LOCATION '{path}'"
    spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet {location}")
    try:
        yield name
    finally:
        spark.sql(f"DROP TABLE {name}")
