"""Files that an ExecutionContext on Spark registers follow the session's settings, or the settings are declined."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import KQueryError, SubstraitError, Unsupported
from tests.conftest import settings

TIME_PARSER = "spark.sql.legacy.timeParserPolicy"
DATETIME_REBASE = "spark.sql.parquet.datetimeRebaseModeInRead"
DECLINED = [
    ("csv", TIME_PARSER, "LEGACY"),
    ("json", TIME_PARSER, "LEGACY"),
    ("csv", "spark.sql.legacy.csv.enableDateTimeParsingFallback", "true"),
    ("json", "spark.sql.legacy.json.enableDateTimeParsingFallback", "true"),
    ("json", "spark.sql.legacy.json.allowEmptyString.enabled", "true"),
    ("csv", "spark.sql.csv.parser.columnPruning.enabled", "false"),
    ("csv", "spark.sql.sources.partitionColumnTypeInference.enabled", "false"),
    ("parquet", "spark.sql.parquet.binaryAsString", "true"),
    ("parquet", "spark.sql.parquet.inferTimestampNTZ.enabled", "false"),
    ("parquet", "spark.sql.parquet.int96TimestampConversion", "true"),
    ("parquet", "spark.sql.parquet.mergeSchema", "true"),
    ("parquet", "spark.sql.legacy.parquet.nanosAsLong", "true"),
    ("orc", "spark.sql.orc.mergeSchema", "true"),
]


def written(spark: Any, directory: Path, file_format: str) -> str:
    """Write files of one row to a directory, and return its path."""
    frame = spark.sql("SELECT 1 AS a, '2020-01-01' AS s")
    frame.write.format(file_format).option("header", True).save(str(directory))
    return str(directory)


def register(context: kq.ExecutionContext, file_format: str, path: str, *args: Any, **options: Any) -> None:
    """Register files of a format as the table t."""
    getattr(context, f"register_{file_format}")("t", path, *args, **options)


def engine_rows(frame: kq.DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in frame.to_arrow().to_pylist()]


def spark_rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


@pytest.mark.parametrize(("file_format", "name", "value"), DECLINED)
def test_other_values_are_declined(
    spark: Any, tmp_path: Path, file_format: str, name: str, value: str
) -> None:
    files = written(spark, tmp_path / "files", file_format)
    before = kq.ExecutionContext(spark)
    register(before, file_format, files)
    with settings(spark, {name: value}):
        context = kq.ExecutionContext(spark)
        with pytest.raises(Unsupported, match=f"files are not supported while {name} is {value}"):
            register(context, file_format, files)
        assert context.sql("SELECT 1 AS a").to_arrow().to_pydict() == {"a": [1]}
    assert before.table("t").count() == 1


@pytest.mark.parametrize(
    ("file_format", "name", "value"), [("csv", TIME_PARSER, "LEGACY"), ("parquet", DATETIME_REBASE, "LEGACY")]
)
def test_settings_that_change_after_registration_are_declined(
    spark: Any, tmp_path: Path, file_format: str, name: str, value: str
) -> None:
    files = written(spark, tmp_path / "files", file_format)
    context = kq.ExecutionContext(spark)
    register(context, file_format, files)
    query = context.table("t")
    with settings(spark, {name: value}):
        for run in (query.to_arrow, query.to_spark):
            with pytest.raises(Unsupported, match=f"{name} changed after files were registered"):
                run()
    assert query.count() == 1


def test_settings_that_change_between_registrations_are_declined(spark: Any, tmp_path: Path) -> None:
    """Otherwise each table would have settings of its own, but queries would compare only those of the first table."""
    path = str(tmp_path / "old.parquet")
    pq.write_table(pa.table({"d": [dt.date(1000, 1, 1)]}), path)
    context = kq.ExecutionContext(spark)
    context.register_parquet("a", path)
    changed = pytest.raises(Unsupported, match=f"{DATETIME_REBASE} changed after files were registered")
    with settings(spark, {DATETIME_REBASE: "LEGACY"}), changed:
        context.register_parquet("b", path)
    context.register_parquet("b", path)
    assert engine_rows(context.table("b")) == spark_rows(spark.read.parquet(path))


def test_registrations_that_fail_do_not_decide_the_settings(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [1]}), path)
    pq.write_table(pa.table({"a": [1], "A": [2]}), tmp_path / "case.parquet")
    pq.write_table(pa.Table.from_arrays([[1], [2]], ["a", "a"]), tmp_path / "twice.parquet")
    context = kq.ExecutionContext(spark)
    same_names = "columns whose names are equal or differ only in case are not supported"
    errors = {"absent": "no such file", "case": same_names, "twice": same_names}
    for failing, message in errors.items():
        with pytest.raises(KQueryError, match=message):
            context.register_parquet("t", str(tmp_path / f"{failing}.parquet"))
    with settings(spark, {DATETIME_REBASE: "LEGACY"}):
        assert context.sql("SELECT 1 AS a").to_arrow().to_pydict() == {"a": [1]}
        context.register_parquet("t", path)
        assert context.table("t").count() == 1


@pytest.mark.parametrize("mode", ["CORRECTED", "LEGACY", "EXCEPTION"])
def test_old_dates_of_other_writers_follow_the_calendar_mode(spark: Any, tmp_path: Path, mode: str) -> None:
    path = str(tmp_path / "old.parquet")
    pq.write_table(pa.table({"d": [dt.date(1000, 1, 1), dt.date(2020, 1, 1), None]}), path)
    with settings(spark, {DATETIME_REBASE: mode}):
        context = kq.ExecutionContext(spark)
        context.register_parquet("t", path)
        if mode == "EXCEPTION":
            with pytest.raises(Exception, match="datetimeRebaseModeInRead"):
                spark.read.parquet(path).collect()
            with pytest.raises(Exception, match="refuses to read in EXCEPTION mode"):
                context.table("t").to_arrow()
        else:
            assert engine_rows(context.table("t")) == spark_rows(spark.read.parquet(path))


def plan_of_file(path: str) -> bytes:
    """The Substrait plan of a scan of a file that is not a registered table."""
    pytest.importorskip("substrait")
    context = kq.ExecutionContext()
    context.register_parquet("t", path)
    frame = context.table("t")
    context.register_arrow("t", pa.table({"other": [1]}))
    return frame.to_substrait()


@pytest.mark.parametrize("kind", ["substrait", "delta"])
@pytest.mark.parametrize("mode", ["CORRECTED", "LEGACY", "EXCEPTION"])
def test_old_dates_of_plans_and_tables_follow_the_calendar_mode(
    spark: Any, tmp_path: Path, mode: str, kind: str
) -> None:
    """Delta reads files with Spark's Parquet reader, so ``spark.read.parquet`` has its rows."""
    path, table = str(tmp_path / "old.parquet"), pa.table({"d": [dt.date(1000, 1, 1), dt.date(2020, 1, 1)]})
    pq.write_table(table, path)
    plan = plan_of_file(path)
    pytest.importorskip("deltalake").write_deltalake(str(tmp_path / "delta"), table)
    context = kq.ExecutionContext(spark)

    def rows() -> list[tuple[Any, ...]]:
        if kind == "delta":
            context.register_delta("t", str(tmp_path / "delta"))
        return engine_rows(context.table("t") if kind == "delta" else context.substrait(plan))

    with settings(spark, {DATETIME_REBASE: mode}):
        if mode == "EXCEPTION":
            with pytest.raises(KQueryError, match="refuses to read in EXCEPTION mode"):
                rows()
        else:
            assert rows() == spark_rows(spark.read.parquet(path))
    if mode == "LEGACY":
        with pytest.raises(KQueryError, match=f"{DATETIME_REBASE} changed after files were registered"):
            rows()


def test_settings_that_columns_of_substrait_plans_depend_on_are_declined(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [1]}), path)
    plan = plan_of_file(path)
    pytest.importorskip("deltalake").write_deltalake(str(tmp_path / "delta"), pa.table({"a": [1]}))
    name = "spark.sql.parquet.mergeSchema"
    with settings(spark, {name: "true"}):
        context = kq.ExecutionContext(spark)
        with pytest.raises(SubstraitError, match=f"files are not supported while {name} is true"):
            context.substrait(plan)
        context.register_delta("t", str(tmp_path / "delta"))  # the table describes its columns
        assert context.table("t").count() == 1


@pytest.mark.parametrize("zone", ["America/Los_Angeles", None])
def test_old_times_are_rebased_in_the_zone_of_their_file(
    spark: Any, tmp_path: Path, zone: str | None
) -> None:
    path = str(tmp_path / "old.parquet")
    keys = {"org.apache.spark.version": "2.4.6"} | ({"org.apache.spark.timeZone": zone} if zone else {})
    times = pa.array([dt.datetime(1500, 1, 1), None, dt.datetime(2020, 1, 1)], pa.timestamp("us", "UTC"))
    with pq.ParquetWriter(path, pa.schema([("t", times.type)])) as writer:
        writer.write_table(pa.table({"t": times}))
        writer.add_key_value_metadata(keys)
    context = kq.ExecutionContext(spark)
    context.register_parquet("t", path)
    expected = spark_rows(spark.sql(f"SELECT unix_micros(t) FROM parquet.`{path}`"))
    assert engine_rows(context.sql("SELECT unix_micros(t) AS m FROM t")) == expected


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_dates_that_only_the_old_parser_accepts_raise(spark: Any, tmp_path: Path, file_format: str) -> None:
    path = tmp_path / f"dates.{file_format}"
    path.write_text("d\n2020-02-30\n" if file_format == "csv" else '{"d": "2020-02-30"}\n')
    with settings(spark, {TIME_PARSER: "EXCEPTION"}):
        read = spark.read.format(file_format).schema("d date").option("header", True).load(str(path))
        with pytest.raises(Exception, match="timeParserPolicy"):
            read.collect()
        context = kq.ExecutionContext(spark)
        register(context, file_format, str(path), "d date")
        with pytest.raises(Exception, match="timeParserPolicy is EXCEPTION"):
            context.table("t").to_arrow()
        with pytest.raises(KQueryError, match=TIME_PARSER):
            register(context, file_format, str(path), "d date", dateFormat="yyyy-MM-dd")


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_the_column_of_malformed_lines_is_declined(spark: Any, tmp_path: Path, file_format: str) -> None:
    path = tmp_path / f"lines.{file_format}"
    path.write_text("a,bad\n1,2\n" if file_format == "csv" else '{"a": 1, "bad": "2"}\n')
    with settings(spark, {"spark.sql.columnNameOfCorruptRecord": "bad"}):
        context = kq.ExecutionContext(spark)
        with pytest.raises(Unsupported, match="the column bad of malformed lines is not supported"):
            register(context, file_format, str(path), "a int, bad string")
