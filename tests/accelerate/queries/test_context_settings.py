"""An ExecutionContext on Spark or an open plan follows the session's settings, or declines the query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.context.session_checks import checked_constants
from kquery_spark.errors import PlanError, Unsupported
from kquery_spark.expr import Literal
from kquery_spark.expr.constants import evaluate_constant
from kquery_spark.frontends.catalyst.versions import CAST, all_changed_calls
from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table
from kquery_spark.spark_bridge.session.bridge import get_bridge
from kquery_spark.spark_bridge.session.settings import SessionSettings, session_settings
from tests.conftest import SPARK_BEFORE_4_3, settings

PRECISION_LOSS = "spark.sql.decimalOperations.allowPrecisionLoss"
TIME_PARSER = "spark.sql.legacy.timeParserPolicy"
CASES = [
    (PRECISION_LOSS, "false", "CAST(a AS DECIMAL(38, 18)) * CAST(a AS DECIMAL(38, 18))", "arithmetic of decimals"),
    (TIME_PARSER, "LEGACY", "to_date(s, 'yyyy-MM-dd')", "patterns of times"),
    (TIME_PARSER, "LEGACY", "(SELECT max(to_timestamp(s, 'yyyy')) FROM input)", "patterns of times"),
    (TIME_PARSER, "LEGACY", "date_format(DATE '2020-01-01', 'yyyy')", "patterns of times"),
    (TIME_PARSER, "LEGACY", "transform(array(s), x -> to_date(x, 'yyyy-MM-dd'))", "patterns of times"),
    (PRECISION_LOSS, "false", "transform(array(a), x -> filter(array(x), y -> CAST(y AS DECIMAL(38, 18)) * 2BD > 0))", "arithmetic"),
    ("spark.sql.legacy.parser.havingWithoutGroupByAsWhere", "true", "a", "havingWithoutGroupByAsWhere=true"),
    ("spark.sql.legacy.sizeOfNull", "false", "size(array(a))", "sizeOfNull=false"),
    ("spark.sql.timestampType", "TIMESTAMP_NTZ", "TIMESTAMP '2020-01-01 00:00:00'", "timestampType=TIMESTAMP_NTZ"),
    ("spark.sql.parser.escapedStringLiterals", "true", r"'a\nb'", "escapedStringLiterals=true"),
    ("spark.sql.ansi.doubleQuotedIdentifiers", "true", '"a"', "doubleQuotedIdentifiers=true"),
    ("spark.sql.groupByOrdinal", "false", "a", "groupByOrdinal=false"),
    ("spark.sql.legacy.charVarcharAsString", "true", "a", "charVarcharAsString=true"),
]  # fmt: skip
ROWS = "SELECT 1 AS a, '2020-01-01' AS s"


@pytest.mark.parametrize(("name", "value", "expression", "reason"), CASES)
def test_other_values_of_settings_are_declined(
    spark: Any, name: str, value: str, expression: str, reason: str
) -> None:
    plan = kq.sql_plan(f"SELECT {expression} AS x FROM input")
    frame = spark.sql(ROWS)
    with settings(spark, {name: value}):
        context = kq.ExecutionContext(spark)
        context.register_arrow("input", arrow_table(frame))
        query = context.sql(f"SELECT {expression} AS x FROM input")
        with pytest.raises(Unsupported, match=reason):
            query.to_arrow()
        with pytest.raises(Unsupported, match=reason):
            query.to_spark()
        with pytest.raises(Unsupported, match=reason):
            frame.transform(plan)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("VALUES (CAST(DATE'-0044-01-01' AS STRING))", "casts of dates to strings"),
        ("VALUES (to_date('2020-01-01', 'yyyy-MM-dd'))", "patterns of times"),
        ("VALUES (to_date('no date', 'yyyy-MM-dd'))", "patterns of times"),
        ("SELECT s IN (CAST(DATE'-0044-01-01' AS STRING)) AS a FROM input", "casts of dates to strings"),
        ("SELECT * FROM input PIVOT (sum(a) FOR s IN (CAST(DATE'-0044-01-01' AS STRING)))", "casts of dates"),
        ("SELECT * FROM range(length(CAST(DATE'-0044-01-01' AS STRING)))", "casts of dates to strings"),
        ("SELECT a FROM input LIMIT length(CAST(DATE'-0044-01-01' AS STRING))", "casts of dates to strings"),
        ("SELECT a FROM input TABLESAMPLE (length(date_format(DATE'2020-01-01', 'y')) ROWS)", "patterns"),
    ],
)
def test_constants_that_analysis_evaluates_are_declined(spark: Any, query: str, reason: str) -> None:
    frame = spark.sql(ROWS)
    with settings(spark, {TIME_PARSER: "LEGACY"}):
        context = kq.ExecutionContext(spark)
        context.register_arrow("input", arrow_table(frame))
        with pytest.raises(Unsupported, match=reason):
            context.sql(query).to_arrow()
        with pytest.raises(Unsupported, match=reason):
            frame.transform(kq.sql_plan(query))


def test_settings_of_other_calls_and_default_values_are_not_declined(spark: Any) -> None:
    defaults = {"spark.sql.timestampType": "TIMESTAMP_LTZ", "spark.sql.legacy.sizeOfNull": "true"}
    with settings(spark, {PRECISION_LOSS: "false", TIME_PARSER: "LEGACY", **defaults}):
        context = kq.ExecutionContext(spark)
        assert context.sql("SELECT 1 + 1 AS a").to_arrow().to_pydict() == {"a": [2]}
        plan = kq.sql_plan("SELECT a + 1 AS a FROM input")
        assert spark.sql(ROWS).transform(plan).collect() == [(2,)]


@pytest.mark.parametrize(
    ("name", "value"), [("spark.sql.session.timeZone", "Asia/Tokyo"), ("spark.sql.ansi.enabled", "false")]
)
def test_changed_settings_are_declined(spark: Any, name: str, value: str) -> None:
    with settings(spark, {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}):
        query = kq.ExecutionContext(spark).sql("SELECT to_date(TIMESTAMP '2020-01-01 20:00:00Z') AS a")
        with (
            settings(spark, {name: value}),
            pytest.raises(Unsupported, match="changed after the ExecutionContext"),
        ):
            query.to_arrow()
        assert query.count() == 1


def test_unsupported_constants_replace_analysis_errors_but_not_interrupts() -> None:
    def refuse() -> SessionSettings:
        raise Unsupported("the session cannot be read")

    one = Literal(1, pa.int32())
    with pytest.raises(KeyboardInterrupt), checked_constants(refuse):
        evaluate_constant(one)
        raise KeyboardInterrupt
    with pytest.raises(Unsupported, match="cannot be read"), checked_constants(refuse):
        evaluate_constant(one)
        raise PlanError("an error that may depend on the constant")


@pytest.mark.skipif(SPARK_BEFORE_4_3, reason="older releases change calls")
def test_calls_of_older_releases_are_known(spark: Any) -> None:
    bridge = get_bridge(spark)
    session = session_settings(bridge.conf, bridge.jvm)
    assert not all_changed_calls(session)
    assert CAST in all_changed_calls(replace(session, version="3.5.1"))
