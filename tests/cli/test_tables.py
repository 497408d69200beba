"""What a command line says about tables."""

import pytest

from kquery_spark import ExecutionContext
from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.cli.tables import (
    TableSpec,
    check_tables,
    format_of_path,
    parse_table,
    read_sql,
    read_table,
    register_locally,
    table_format,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t=/data/t.parquet", TableSpec("t", "/data/t.parquet")),
        ("t=csv:/data/t", TableSpec("t", "/data/t", "csv")),
        ("t=s3a://bucket/t.orc", TableSpec("t", "s3a://bucket/t.orc")),
        ("t=json:hdfs://host:8020/t", TableSpec("t", "hdfs://host:8020/t", "json")),
        (" t = a=b.csv ", TableSpec("t", "a=b.csv")),
    ],
)
def test_a_table_is_a_name_a_path_and_perhaps_a_format(text, expected):
    assert parse_table(text) == expected


@pytest.mark.parametrize("text", ["t", "t=", "=path", "two words=path", "t=csv:", "1t=path"])
def test_anything_else_is_refused_with_the_text_in_the_message(text):
    with pytest.raises(ValueError, match=r"NAME=|cannot be the name|no path"):
        parse_table(text)


@pytest.mark.parametrize(
    ("path", "format_"),
    [
        ("a.parquet", "parquet"),
        ("a.csv.gz", "csv"),
        ("A.CSV", "csv"),
        ("a.jsonl", "json"),
        ("dir.orc/", "orc"),
        ("part-0.snappy.parquet", "parquet"),
        ("a.txt", None),
        ("directory", None),
    ],
)
def test_the_ending_of_a_path_names_its_format(path, format_):
    assert format_of_path(path) == format_


def test_a_directory_is_read_by_its_first_data_file(spark, taxi_dir):
    assert read_table(spark, TableSpec("t", str(taxi_dir / "parquet"))).count() == 24_000
    text = read_table(spark, TableSpec("t", str(taxi_dir / "csv" / "year=2019" / "month=1")))
    assert dict(text.dtypes)["fare_amount"] == "double"
    assert dict(text.dtypes)["passenger_count"] == "int"


def test_a_directory_without_data_files_has_no_format(spark, tmp_path):
    (tmp_path / "_notes.csv").write_text("a\n1\n")
    with pytest.raises(Failure, match="write t=FORMAT:PATH") as caught:
        read_table(spark, TableSpec("t", str(tmp_path)))
    assert caught.value.code is Exit.USAGE


@pytest.mark.parametrize(
    ("sign", "table"), [("_delta_log/0.json", "Delta table"), ("metadata/version-hint.text", "Iceberg table")]
)
def test_a_directory_of_a_table_is_not_read_as_plain_files(spark, tmp_path, sign, table):
    """It has the files of all versions."""
    for name in (sign, "day=1/part.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for read in (lambda spec: read_table(spark, spec), lambda spec: check_tables((spec,))):
        with pytest.raises(Failure, match=f"is a {table}, and --table reads plain files") as caught:
            read(TableSpec("t", str(tmp_path)))
        assert caught.value.code is Exit.USAGE


def test_hidden_directories_are_skipped(spark, tmp_path):
    for name in ("_logs/a.json", ".cache/b.json", "day=1/part.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("a\n1\n")
    spec = TableSpec("t", str(tmp_path))
    assert table_format(spark, spec) == "csv"
    context = ExecutionContext()
    register_locally(context, (spec,))
    assert context.sql("SELECT a, day FROM t").to_arrow().to_pylist() == [{"a": 1, "day": 1}]


def test_a_file_without_any_valid_json_is_unreadable(spark, tmp_path):
    (tmp_path / "t.json").write_text("not json\nnor this\n")
    with pytest.raises(Failure, match="is valid JSON") as caught:
        read_table(spark, TableSpec("t", str(tmp_path / "t.json")))
    assert caught.value.code is Exit.UNREADABLE


def test_an_sql_file_must_be_there_readable_and_say_something(tmp_path):
    with pytest.raises(Failure) as caught:
        read_sql(str(tmp_path / "no.sql"))
    assert caught.value.code is Exit.MISSING_PATH
    (tmp_path / "empty.sql").write_text(" \n")
    with pytest.raises(Failure) as caught:
        read_sql(str(tmp_path / "empty.sql"))
    assert caught.value.code is Exit.BAD_SQL
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Failure) as caught:
        read_sql(str(tmp_path / "binary.sql"))
    assert caught.value.code is Exit.UNREADABLE


@pytest.mark.parametrize("text", ["c=parqet:ok.csv", "c=parqet:/data/ok.csv", "c=delta:t"])
def test_an_unknown_format_is_named_with_the_known_ones(text):
    format_ = text[2:].partition(":")[0]
    with pytest.raises(ValueError, match=f"unknown format '{format_}'.* parquet, csv, json, orc"):
        parse_table(text)


def test_a_colon_may_be_part_of_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:b.csv").write_text("x\n1\n")
    assert parse_table("t=a:b.csv") == TableSpec("t", "a:b.csv")
    assert parse_table("t=file:t.csv") == TableSpec("t", "file:t.csv")
    assert parse_table("t=dbfs:/t.csv") == TableSpec("t", "dbfs:/t.csv")
    assert parse_table("t=CSV:t") == TableSpec("t", "t", "csv")
