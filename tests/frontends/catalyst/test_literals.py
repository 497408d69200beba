from __future__ import annotations

import math

import pyarrow as pa
import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.literals import literal
from kquery_spark.spark_bridge.plan.literal_values import from_text, scalar
from kquery_spark.types.names import YEAR_MONTH
from tests.conftest import settings


def literal_of(fetch, expression):
    facts = fetch(f"select {expression} as x from range(3)")
    alias = facts.parse().trees("projectList")[0]
    return alias.child("child"), facts


LITERALS = [
    "true",
    "1Y",
    "-1S",
    "1",
    "9223372036854775807L",
    "0.1F",
    "1e38F",
    "cast('1.17549435E-38' as float)",
    "1.5D",
    "5e-324D",
    "-0.0D",
    "cast('-Infinity' as double)",
    "1.50BD",
    "cast('1e-10' as decimal(38,18))",
    "cast(0 as decimal(20,10))",
    "123456789012345678901234567890.12345678",
    "'a\\nb\"c€😀\\u0000d'",
    "'  pad '",
    "X'00FF'",
    "X''",
    "date'2020-02-29'",
    "date'0001-01-01'",
    "timestamp'2020-01-01 12:34:56.789012'",
    "timestamp'1883-11-18 12:00:00'",
    "timestamp_ntz'2020-01-01 12:34:56.789'",
    "interval 3 days",
    "interval '-5' minute",
    "interval '1 02:03:04.567' day to second",
    "null",
    "cast(null as decimal(5,2))",
    "cast(null as timestamp)",
    "array(1,2,null)",
    "array('a,b','c',null)",
    "array(array(1.5),null)",
    "array(date'2020-01-01')",
    "map('a',1,'b',null)",
    "named_struct('a',1,'b','x,y','c',X'01')",
    "array(timestamp'2020-01-01 00:00:00')",
    "array(interval 1 day, null)",
    "array(cast('nan' as double), 1D)",
]


@pytest.mark.parametrize("expression", LITERALS)
def test_a_literal_is_what_spark_answers(spark, fetch, expression):
    node, facts = literal_of(fetch, expression)
    assert node.cls == "Literal"
    expected = spark.sql(f"select {expression} as x").toArrow()["x"][0]
    actual = literal(node, facts, "UTC")
    assert actual.type == expected.type
    assert repr(actual.as_py()) == repr(expected.as_py())


@pytest.mark.parametrize("policy", ["CORRECTED", "legacy"])
@pytest.mark.parametrize(
    "text", ["-0044-03-15", "0000-02-29", "1582-10-10", "2020-01-01", "+12345-01-01", "-290000-12-31"]
)
def test_dates_that_python_or_the_hybrid_calendar_does_not_have(spark, fetch, text, policy):
    with settings(spark, {"spark.sql.legacy.timeParserPolicy": policy}):
        node, facts = literal_of(fetch, f"date'{text}'")
        days = spark.sql(f"select unix_date(date'{text}') as x").first().x
        assert literal(node, facts, "UTC").cast(pa.int32()).as_py() == days


@pytest.mark.parametrize("instant", [1604208600, 1604212200])
def test_the_hour_that_clocks_repeat_is_not_confused(spark, fetch, instant):
    # 2020-11-01 01:30 in New York is two instants; both print alike in the plan.
    zone = "America/New_York"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        node, facts = literal_of(fetch, f"timestamp_seconds({instant})")
        assert node["value"] == "2020-11-01 01:30:00"
        assert literal(node, facts, zone).cast(pa.int64()).as_py() == instant * 1_000_000
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_strings_that_are_not_utf8_are_declined(fetch):
    node, facts = literal_of(fetch, "cast(X'FFFE' as string)")
    with pytest.raises(Unsupported, match="UTF-8"):
        literal(node, facts, "UTC")


def test_a_replacement_character_of_its_own_is_a_string(fetch):
    node, facts = literal_of(fetch, "'a\ufffdb'")
    assert literal(node, facts, "UTC").as_py() == "a\ufffdb"


def test_year_month_intervals_are_months(fetch):
    node, facts = literal_of(fetch, "interval '-1-2' year to month")
    value = literal(node, facts, "UTC")
    assert (value.type, value.value) == (YEAR_MONTH, -14)


@pytest.mark.parametrize("expression", ["make_interval(1,2,3,4)", "'a' collate UNICODE"])
def test_types_without_an_answer_are_declined(fetch, expression):
    node, facts = literal_of(fetch, expression)
    with pytest.raises(Unsupported):
        literal(node, facts, "UTC")


def test_internal_values_from_text():
    assert from_text("-5", pa.date32()) == -5
    assert math.isnan(from_text("NaN", pa.float64()))
    assert from_text("1.0E300", pa.float64()) == 1e300
    with pytest.raises(Unsupported):
        from_text("[B@1", pa.binary())
    with pytest.raises(Unsupported):
        from_text("a\ufffd", pa.string())


def test_null_parts_of_nested_values():
    kind = pa.struct([("a", pa.list_(pa.int32())), ("b", pa.map_(pa.string(), pa.date32()))])
    assert scalar([None, [("k", None)]], kind).as_py() == {"a": None, "b": [("k", None)]}
    assert scalar(None, kind).as_py() is None
