"""``--engine local --output``: Spark reads the same rows and types from it as from its own output."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.cli.failures import Exit, Failure
from kquery_spark.cli.local_output import LocalOutput
from kquery_spark.cli.output import Output
from kquery_spark.errors import Unsupported
from tests.conftest import settings

VALUES = """
SELECT * FROM VALUES
  (1, date'2020-01-01', 1.50, 'a,"b', float(1e10), true, ' x '),
  (2, null, null, '', double('nan'), false, null),
  (3, date'1990-01-01', 2.25, 'ü\\nz', 0.1, null, '#')
AS t(`i d`, d, x, s, f, b, `q,1`)
"""
NESTED = ", array(`i d`, null) AS a, named_struct('s', s, 'b', b) AS st, map('k', x) AS m, binary(s) AS bin"
TIMES = ", timestamp'2020-01-01 10:00:00.123' AS ts, timestamp_ntz'2020-07-01 10:00:00' AS n"


@pytest.mark.parametrize("where", ["", " WHERE `i d` > 5"])
@pytest.mark.parametrize(
    ("format_", "columns"),
    [("parquet", NESTED + TIMES), ("csv", TIMES), ("json", NESTED + TIMES), ("orc", NESTED)],
)
def test_spark_reads_it_like_its_own_output(spark, tmp_path, format_, columns, where):
    query = VALUES.replace("*", f"*{columns}") + where
    context = kq.ExecutionContext(time_zone=spark.conf.get("spark.sql.session.timeZone"))
    ours, theirs = str(tmp_path / f"ours.{format_}"), str(tmp_path / f"theirs.{format_}")
    LocalOutput(ours).write(context.sql(query))
    Output(spark, theirs).write(spark.sql(query))
    if format_ == "json" and where:  # Spark infers no columns from files without lines
        assert spark.read.schema("`i d` INT").json(ours).count() == 0
        return
    actual, expected = (spark.read.format(format_).option("header", True).load(p) for p in (ours, theirs))
    assert actual.schema == expected.schema
    assert sorted(map(str, actual.collect())) == sorted(map(str, expected.collect()))
    assert (actual.count() == 0) is bool(where)


@pytest.mark.parametrize("values", ["CAST(NULL AS INT), 1", "'', NULL, 'a', ' ', '#c', '\"'"])
def test_csv_of_one_column_has_sparks_lines(spark, tmp_path, values):
    query = "SELECT * FROM VALUES " + ", ".join(f"({v})" for v in values.split(", ")) + " AS t(`#s`)"
    LocalOutput(str(tmp_path / "ours.csv")).write(kq.ExecutionContext().sql(query))
    Output(spark, str(tmp_path / "theirs.csv")).write(spark.sql(query).coalesce(1))
    (theirs,) = (tmp_path / "theirs.csv").glob("part-*")
    assert (tmp_path / "ours.csv" / "part-00000.csv").read_text() == theirs.read_text()


@pytest.mark.parametrize(
    ("format_", "column", "reason"),
    [
        ("csv", "array(1)", "the format has no array"),
        ("csv", "binary('a')", "the format has no binary"),
        ("parquet", "INTERVAL '1' DAY", "interval"),
        ("json", "NULL", "void is not supported"),
        ("parquet", "array(NULL)", "void"),
        ("orc", "timestamp'2020-01-01 00:00:00'", "depends on the time zone"),
        ("orc", "array(timestamp_ntz'2020-01-01 00:00:00')", "depends on the time zone"),
        ("orc", "array(date'2020-01-01')", "depends on the calendar"),
        ("orc", "date'1582-10-14'", "a date is before 1582-10-15"),
    ],
)
def test_a_type_that_would_change_is_refused(tmp_path, format_, column, reason):
    with pytest.raises(Unsupported, match=rf"column c cannot be written as .* without Spark: .*{reason}"):
        LocalOutput(str(tmp_path / f"r.{format_}")).write(kq.ExecutionContext().sql(f"SELECT {column} AS c"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_dates_and_times_before_the_calendar_change_are_unchanged(spark, tmp_path, format_):
    query = "SELECT date'0900-02-28' AS d, timestamp'1500-03-01 00:00:00' AS ts"
    context = kq.ExecutionContext(time_zone=spark.conf.get("spark.sql.session.timeZone"))
    LocalOutput(str(tmp_path / f"r.{format_}")).write(context.sql(query))
    # the default mode in releases before 4.0
    with settings(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "EXCEPTION"}):
        reader = spark.read.schema("d DATE, ts TIMESTAMP").format(format_).option("header", True)
        frame = reader.load(str(tmp_path / f"r.{format_}")).selectExpr("string(d)", "string(ts)")
        assert frame.collect() == [("0900-02-28", "1500-03-01 00:00:00")]


def test_two_columns_of_one_name_are_refused(tmp_path):
    with pytest.raises(Failure, match="two columns of the result are named A"):
        LocalOutput(str(tmp_path / "r")).write(kq.ExecutionContext().sql("SELECT 1 AS a, 2 AS A"))


def test_overwrite_replaces_only_when_the_new_result_is_complete(tmp_path):
    context = kq.ExecutionContext()
    context.register_arrow("t", pa.table({"x": list(range(100))}))
    target = tmp_path / "r"
    LocalOutput(str(target)).write(context.sql("SELECT x FROM t"))
    with pytest.raises(Failure, match="--overwrite"):
        LocalOutput(str(target))
    with pytest.raises(kq.KQueryError, match="DIVIDE_BY_ZERO"):
        LocalOutput(str(target), overwrite=True).write(context.sql("SELECT 1 / (x - 50) AS y FROM t"))
    assert pq.read_table(target).num_rows == 100
    LocalOutput(str(target), overwrite=True).write(context.sql("SELECT x FROM t WHERE x < 5"))
    assert pq.read_table(target).num_rows == 5
    assert os.listdir(tmp_path) == ["r"]
    late = LocalOutput(str(tmp_path / "late"))
    (tmp_path / "late").mkdir()
    with pytest.raises(Failure, match="appeared while"):
        late.write(context.sql("SELECT x FROM t"))
    assert sorted(os.listdir(tmp_path)) == ["late", "r"]


def test_a_query_that_fails_creates_no_parent_directories(tmp_path):
    context, target = kq.ExecutionContext(), tmp_path / "a" / "b" / "r.csv"
    with pytest.raises(kq.KQueryError, match="DIVIDE_BY_ZERO"):
        LocalOutput(str(target)).write(context.sql("SELECT 1 / (id - 5) AS x FROM range(10)"))
    assert os.listdir(tmp_path) == []
    LocalOutput(str(target)).write(context.sql("SELECT 1 AS x"))
    assert (target / "part-00000.csv").read_text() == "x\n1\n"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(
    "interrupted", [1, 2], ids=["after the old output is moved", "after the new output is in place"]
)
def test_an_interrupt_during_the_renames_loses_no_output(tmp_path, monkeypatch, interrupted):
    context, target, calls = kq.ExecutionContext(), tmp_path / "r.csv", []
    LocalOutput(str(target)).write(context.sql("SELECT 1 AS x"))
    output = LocalOutput(str(target), overwrite=True)
    rename = output._rename

    def rename_and_interrupt(*paths):
        rename(*paths)
        calls.append(paths)
        if len(calls) == interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr(output, "_rename", rename_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        output.write(context.sql("SELECT 2 AS x"))
    assert (target / "part-00000.csv").read_text() == f"x\n{interrupted}\n"
    assert os.listdir(tmp_path) == ["r.csv"]


@pytest.mark.parametrize("interrupted", [1, 2])
def test_a_rename_that_stops_halfway_loses_no_rows(tmp_path, monkeypatch, capsys, interrupted):
    """Object stores rename by copying file after file: if that stops, both directories exist."""
    context, target, calls = kq.ExecutionContext(), tmp_path / "r.csv", []
    LocalOutput(str(target)).write(context.sql("SELECT 1 AS x"))
    output = LocalOutput(str(target), overwrite=True)
    rename = output._rename

    def rename_halfway(source, destination):
        calls.append(source)
        if len(calls) < interrupted:
            return rename(source, destination)
        destination.mkdir()
        raise OSError("no connection")

    monkeypatch.setattr(output, "_rename", rename_halfway)
    with pytest.raises(Failure, match="no connection"):
        output.write(context.sql("SELECT 2 AS x"))
    complete = [path for path in tmp_path.iterdir() if (path / "part-00000.csv").is_file()]
    assert [(path / "part-00000.csv").read_text() for path in complete] == ["x\n1\n"]
    (old,) = tmp_path.glob(".r.csv.*.old")
    assert f"the previous files of {target} are in {old}, or still in {target}" in capsys.readouterr().err


def test_other_file_systems_need_spark():
    with pytest.raises(Failure, match="local disk; use --engine kquery") as caught:
        LocalOutput("s3a://bucket/r.parquet")
    assert caught.value.code is Exit.OUTPUT
