"""Frames over strings that are not valid UTF-8: what leaves them, Python functions, and functions that are declined."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark import FallbackWarning, kquery_plan
from kquery_spark.kernels.utf8 import strings_from_bytes
from tests.conftest import settings

VALUES = [
    b"caf\xe9 au lait",
    b"caf\xe9",
    b"\xe9",
    b"caf\xc3\xa9",
    b"cafe",
    b"",
    None,
    b"\x80b",
    b"\xff\xfe",
    b"a\xf0\x9f\x98b",
    b"x",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("invalid") / "t.parquet"
    pq.write_table(
        pa.table({"id": range(len(VALUES)), "s": strings_from_bytes(VALUES)}), file, row_group_size=6
    )
    return str(file)


@pytest.fixture(params=["workers", "driver"])
def table(request: Any, spark: SparkSession, path: str) -> Any:
    with settings(spark, {"spark.kquery.driverBytes": "0" if request.param == "workers" else "8m"}):
        yield spark.read.parquet(path)


def fast(frame: DataFrame) -> DataFrame:
    return frame.transform(lambda f: kquery_plan(f, when="always", fallback="error"))


def outcome(action: Callable[[], Any]) -> Any:
    """The value of an action or the class of its error."""
    try:
        return action()
    except Exception as error:
        return type(error).__name__


def test_rows_have_replaced_characters_as_sparks_do(table: DataFrame) -> None:
    query = table.select("id", "s", F.upper("s"), F.concat("s", F.lit("-"))).orderBy("id")
    assert fast(query).collect() == query.collect()
    assert fast(query).take(2) == query.take(2)


def test_arrow_has_the_bytes(table: DataFrame) -> None:
    query = table.select("id", F.concat("s", F.lit("\u00e9")).alias("c"), F.length("s")).orderBy("id")
    ours, theirs = fast(query).toArrow(), query.toArrow()
    assert ours.column("c").cast(pa.binary()) == theirs.column("c").cast(pa.binary())
    assert ours.column(2) == theirs.column(2)


def test_pandas_and_show_do_what_sparks_do(table: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    query = table.orderBy("id")
    ours, theirs = outcome(fast(query).toPandas), outcome(query.toPandas)
    assert type(ours) is type(theirs)
    fast(query).show()
    shown = capsys.readouterr().out
    query.show()
    assert shown == capsys.readouterr().out


@pytest.mark.parametrize("use_arrow", [False, True])
def test_python_functions_get_the_strings_that_sparks_do(table: DataFrame, use_arrow: bool) -> None:
    """Pickled arguments have U+FFFD; for those that cross as Arrow, PySpark itself raises an error."""
    size = F.udf(lambda s: None if s is None else len(s), "int", useArrow=use_arrow)
    query = table.select("id", size("s"), size(F.upper("s"))).orderBy("id")
    ours = query.transform(lambda f: kquery_plan(f, when="always"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if use_arrow else "error", FallbackWarning)
        assert outcome(ours.collect) == outcome(query.collect)


def test_files_have_the_bytes(table: DataFrame, tmp_path: Path) -> None:
    query = table.where("s LIKE 'caf_' OR length(s) < 3")
    for format_ in ("parquet", "orc", "csv", "json"):
        for name, frame in (("ours", fast(query)), ("theirs", query)):
            frame.coalesce(1).write.format(format_).save(str(tmp_path / f"{format_}-{name}"))
        contents = [
            sorted(
                b"".join(f.read_bytes() for f in sorted((tmp_path / f"{format_}-{n}").glob("part-*"))).split(
                    b"\n"
                )
            )
            for n in ("ours", "theirs")
        ]
        if format_ in ("csv", "json"):
            assert contents[0] == contents[1]
        else:
            read = [
                table.sparkSession.read.format(format_)
                .load(str(tmp_path / f"{format_}-{n}"))
                .selectExpr("hex(s)", "id")
                for n in ("ours", "theirs")
            ]
            assert sorted(read[0].collect(), key=str) == sorted(read[1].collect(), key=str)


def test_declined_functions_run_on_spark(table: DataFrame) -> None:
    """RIGHT of a string whose last character is cut: the action runs again on Spark, visibly."""
    query = table.selectExpr("hex(right(s, 1))")
    ours = query.transform(lambda f: kquery_plan(f, when="always"))
    with pytest.warns(FallbackWarning, match="the bytes after it"):
        assert len(outcome(ours.collect)) > 0


def test_other_queries_see_the_answers(table: DataFrame) -> None:
    """The engine's frame inside a query of Spark's, which cannot run again."""
    query = table.select("id", F.length("s").alias("n"), F.upper("s").alias("u"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        outer = [
            f.groupBy("n").agg(F.count("u"), F.max("u")).orderBy("n").collect() for f in (fast(query), query)
        ]
    assert outer[0] == outer[1]


def test_escaped_partition_names_are_read_as_spark_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("caf%E9", "caf%C3%A9", "caf\u00e9", "%zz", "a%20b"):
        directory = tmp_path / f"p={name}"
        directory.mkdir()
        pq.write_table(pa.table({"id": [len(name)]}), directory / "a.parquet")
    query = "SELECT id, hex(p) AS p, length(p) AS n FROM t ORDER BY id, p"
    context = kq.ExecutionContext()
    context.register_parquet("t", str(tmp_path))
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("t")
    expected = spark.sql(query)
    assert context.sql(query).to_arrow().to_pylist() == expected.toArrow().to_pylist()
    assert fast(expected).collect() == expected.collect()


def test_contexts_print_replaced_characters(
    spark: SparkSession, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    context = kq.ExecutionContext()
    context.register_parquet("t", path)
    query = "SELECT id, s FROM t ORDER BY id"
    expected = spark.read.parquet(path).orderBy("id")
    assert context.sql(query).collect() == [row.asDict() for row in expected.collect()]
    assert context.sql(query).tail(3) == [row.asDict() for row in expected.tail(3)]
    context.sql(query).show()
    shown = capsys.readouterr().out
    expected.show()
    assert shown == capsys.readouterr().out


def test_verify_compares_bytes(spark: SparkSession, path: str) -> None:
    report = kq.verify(spark.read.parquet(path).selectExpr("id", "s", "length(s) AS n"))
    assert report.ok, str(report)
