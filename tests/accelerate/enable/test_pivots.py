"""Under ``kq.enable``, the engine finds values of ``pivot`` and ``crosstab`` that Python can pass to Spark unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkTypeError
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as F

import kquery_spark as kq
from kquery_spark.accelerate.execution.dataframe import EngineFrame
from kquery_spark.accelerate.observers import QueryEvent
from kquery_spark.errors import Unsupported
from tests.conftest import settings

FOUND_BY_ENGINE = ("s", "i", "l", "b", "t.s", "`odd.name`", "constant", "y", "h")


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("pivots") / "t")
    spark.range(60).selectExpr(
        "id % 3 AS k", "CASE id % 5 WHEN 0 THEN NULL WHEN 1 THEN 'ä' WHEN 2 THEN '' ELSE 'z' || id % 5 END AS s",
        "CAST(id % 4 - 2 AS INT) AS i", "IF(id % 6 = 0, NULL, id * 5000000000 % 7) AS l", "id % 2 = 0 AS b",
        "DATE '2026-01-01' + CAST(id % 3 AS INT) AS d", "CAST(id % 3 AS DECIMAL(5, 2)) AS m", "id / 2 AS f",
        "'x' || id % 2 AS `odd.name`", "'same' AS constant", "id AS v",
        "CAST(id % 3 - 1 AS TINYINT) AS y", "CAST(id % 3 AS SMALLINT) AS h",
    ).coalesce(2).write.parquet(path)  # fmt: skip
    return spark.read.parquet(path).alias("t")


@pytest.fixture
def events(spark: SparkSession) -> Iterator[list[QueryEvent]]:
    found: list[QueryEvent] = []
    stop = kq.on_query(found.append)
    kq.enable(spark, when="always")
    yield found
    kq.disable(spark)
    stop()


def pivoted(frame: DataFrame, column: str) -> DataFrame:
    return frame.groupBy("k").pivot(column).agg(F.sum("v"), F.count(F.lit(1)).alias("n")).orderBy("k")


@pytest.mark.parametrize("column", [*FOUND_BY_ENGINE, "d", "m", "f"])
def test_the_columns_and_rows_are_those_of_spark(
    frame: DataFrame, column: str, events: list[QueryEvent]
) -> None:
    kq.disable(frame.sparkSession)
    expected = pivoted(frame, column)
    rows = expected.collect()
    kq.enable(frame.sparkSession, when="always")
    actual = pivoted(frame, column)
    assert bool(events) == (column in FOUND_BY_ENGINE)
    assert actual.schema == expected.schema
    assert actual.collect() == rows


def test_what_spark_rejects_is_its_error(frame: DataFrame, events: list[QueryEvent]) -> None:
    spark = frame.sparkSession
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        pivoted(frame, "nosuch")
    spark.conf.set("spark.sql.pivotMaxValues", "3")
    try:
        with pytest.raises(AnalysisException, match="more than 3 distinct values"):
            pivoted(frame, "s")
        assert len(pivoted(frame, "k").columns) == 1 + 2 * 3
    finally:
        spark.conf.unset("spark.sql.pivotMaxValues")


SPECIAL = [
    "a\nb",
    "\r",
    "'",
    '"',
    "`",
    "\\",
    "\\n",
    " ",
    "a.b",
    "\U0001f600",
    "e\u0301",
    "null",
    "NULL",
    "x" * 5000,
]


@pytest.mark.parametrize(
    "strings",
    [
        SPECIAL,
        [None, "", *SPECIAL, *map(str, range(200))],
        ["", *map(str, range(200))],
        ["a\x1eb", *map(str, range(200))],  # the separator of the strings on their way to the JVM
    ],
    ids=["few", "many", "many with an empty one", "many with a separator"],
)
def test_strings_that_could_change_on_their_way_to_the_jvm(
    spark: SparkSession, tmp_path: Path, events: list[QueryEvent], strings: list[str | None]
) -> None:
    kq.disable(spark)
    rows = [(number % 2, string, number) for number, string in enumerate(strings)]
    spark.createDataFrame(rows, "k int, s string, v int").coalesce(1).write.parquet(str(tmp_path / "t"))
    frame = spark.read.parquet(str(tmp_path / "t"))
    expected = frame.groupBy("k").pivot("s").sum("v").orderBy("k")
    kq.enable(spark, when="always")
    actual = frame.groupBy("k").pivot("s").sum("v").orderBy("k")
    assert events
    assert actual.columns == expected.columns
    assert len(actual.columns) == 1 + len(strings)
    assert actual.collect() == expected.collect()


CROSSTABS = [
    ("k", "s"),
    ("s", "k"),
    ("i", "l"),
    ("b", "d"),
    ("m", "f"),
    ("`odd.name`", "constant"),
    ("s", "s"),
]


@pytest.mark.parametrize(("first", "second"), CROSSTABS)
def test_crosstab_has_the_columns_and_rows_of_spark(
    frame: DataFrame, events: list[QueryEvent], first: str, second: str
) -> None:
    kq.disable(frame.sparkSession)
    expected = frame.crosstab(first, second)
    rows = sorted(expected.collect(), key=str)
    kq.enable(frame.sparkSession, when="always")
    for crosstab in (frame.crosstab, frame.stat.crosstab):
        events.clear()
        actual = crosstab(first, second)
        assert events[-1].place == "tasks"
        assert actual.schema == expected.schema
        assert sorted(actual.collect(), key=str) == rows


def test_crosstab_of_strings_that_name_columns(
    spark: SparkSession, tmp_path: Path, events: list[QueryEvent]
) -> None:
    """Spark removes backticks from the strings, so two of them become one column."""
    kq.disable(spark)
    rows = [(text, text) for text in [None, "null", "a.b", "a`b", "ab", "", " ", "é"] * 2]
    spark.createDataFrame(rows, "a string, b string").coalesce(1).write.parquet(str(tmp_path / "t"))
    frame = spark.read.parquet(str(tmp_path / "t"))
    expected = frame.crosstab("a", "b")
    kq.enable(spark, when="always")
    actual = frame.crosstab("a", "b")
    assert events[-1].place == "tasks"
    assert actual.columns == expected.columns
    assert sorted(actual.collect(), key=str) == sorted(expected.collect(), key=str)


def test_an_error_in_the_query_of_the_values_does_not_rerun_crosstab(
    frame: DataFrame, events: list[QueryEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, a crosstab whose job the user has canceled would run again in Spark."""

    def cancelled(self: EngineFrame) -> list[Any]:
        raise AnalysisException("cancelled")

    monkeypatch.setattr(EngineFrame, "collect", cancelled)
    with pytest.raises(AnalysisException, match="cancelled"):
        frame.crosstab("k", "s")


def test_crosstab_with_too_many_values_raises_the_error_of_spark(
    frame: DataFrame, events: list[QueryEvent]
) -> None:
    with (
        settings(frame.sparkSession, {"spark.sql.pivotMaxValues": "3"}),
        pytest.raises(AnalysisException, match="more than 3 distinct values"),
    ):
        frame.crosstab("k", "s")
    assert events[-1].place == "tasks"


def test_crosstab_raises_the_errors_of_spark(frame: DataFrame, events: list[QueryEvent]) -> None:
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        frame.crosstab("nosuch", "k")
    assert not events
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        frame.crosstab("k", "nosuch")
    with pytest.raises(PySparkTypeError):
        frame.crosstab("k", 1)  # type: ignore[arg-type]


def test_a_table_without_rows_has_no_pivoted_columns(frame: DataFrame, events: list[QueryEvent]) -> None:
    empty = frame.where("v < 0")
    assert pivoted(empty, "s").columns == ["k"]
    assert pivoted(empty, "s").collect() == []


def test_the_largest_limit_of_values_acts_as_in_spark(frame: DataFrame, events: list[QueryEvent]) -> None:
    def outcome() -> object:
        try:
            return pivoted(frame, "s").columns
        except Exception as error:
            return type(error)

    spark = frame.sparkSession
    spark.conf.set("spark.sql.pivotMaxValues", str(2**31 - 1))
    try:
        enabled = outcome()
        kq.disable(spark)
        assert enabled == outcome()
    finally:
        spark.conf.unset("spark.sql.pivotMaxValues")


def test_a_query_that_the_engine_declines_raises_if_the_user_asks_for_errors(
    spark: SparkSession, tmp_path: Path, events: list[QueryEvent]
) -> None:
    (tmp_path / "t.txt").write_text("a\nb\na\n")
    frame = spark.read.text(str(tmp_path / "t.txt"))
    assert frame.groupBy().pivot("value").count().columns == ["a", "b"]
    kq.enable(spark, when="always", fallback="error")
    with pytest.raises(Unsupported):
        frame.groupBy().pivot("value").count()


def test_given_values_are_passed_on_and_disable_restores_the_method(
    frame: DataFrame, events: list[QueryEvent]
) -> None:
    assert frame.groupBy("k").pivot("s", ["z3", "z4"]).count().columns == ["k", "z3", "z4"]
    assert not events
    wrapped = GroupedData.pivot
    kq.disable(frame.sparkSession)
    assert GroupedData.pivot is not wrapped
    assert "values" in GroupedData.pivot.__code__.co_varnames
