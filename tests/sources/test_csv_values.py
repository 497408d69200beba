"""Rare strings of CSV and JSON files become the values that Spark reads."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from kquery_spark.frontends.sql import parse_type
from kquery_spark.frontends.sql.analyzer.types import arrow_type
from kquery_spark.sources.json.source import json_source
from tests.sources.compare import assert_same, written
from tests.sources.csv_files import compare, cut_by  # noqa: F401

WITH_GMT = [
    "2019-01-01GMT", "2019-01GMT", "2019GMT-01-01", "GMT2019-01-01", "2019-01-01 GMT", "2019-01-01 10:00:00GMT", "2019GMT-01-01 10:00:00",
    "2019-01-01 10:00:00 GMT", "2019-01-01 10:00:00GMT+1", "2019-01-01 10:00:00 GMT+1", "GMT", "GMT+1", "GMTGMT2019", "GMT+2019-01-01", "2019-01-01gmt",
    "Tue, 01 Jan 2019 10:00:00 GMT", "GM2019GMTT",
]  # fmt: skip


@pytest.mark.parametrize("strings", [WITH_GMT, WITH_GMT[:1]], ids=len)
def test_gmt_in_dates_and_times(spark, tmp_path, strings):
    """Spark removes GMT everywhere in a string that is not a date or timestamp, and parses it again."""
    columns = {"d": "date", "t": "timestamp", "n": "timestamp_ntz", "s": "string"}
    path = written(tmp_path, "".join(f'"{x}"|"{x}"|"{x}"|x\n' for x in strings))
    compare(spark, path, columns, sep="|")
    compare(spark, path, columns, sep="|", dateFormat="yyyy-MM-dd", timestampFormat="yyyy-MM-dd HH:mm:ss")


def test_gmt_in_json(spark, tmp_path):
    ddl = "d date, t timestamp"
    path = written(tmp_path, "".join(json.dumps({"d": x, "t": x}) + "\n" for x in WITH_GMT))
    source = json_source([str(path)], arrow_schema(ddl))
    assert_same(spark.read.schema(ddl).json(str(path)), source)


def arrow_schema(ddl: str) -> pa.Schema:
    return pa.schema(list(arrow_type(parse_type(f"struct<{ddl}>"), "UTC")))


SINGLES = [
    "3.4028235677973366e38", "3.4028235677973367e38", "340282356779733661637539395458142568447", "340282356779733661637539395458142568448",
    "16777217", "16777219", "16777217." + "0" * 300 + "1", "16777218." + "9" * 300, "16777219." + "0" * 300 + "1", "7.006492321624085e-46",
    "7.006492321624086e-46", "1e-400", "1e400",
]  # fmt: skip


def test_floats_between_two_values(spark, tmp_path):
    """The sign keeps Arrow from parsing the strings."""
    path = written(tmp_path, "".join(f"{sign}{x}\n" for x in SINGLES for sign in "+-"))
    compare(spark, path, {"f": "float"})
    path = written(tmp_path, "".join(f'{{"f": {x}}}\n' for x in ["-0", *SINGLES]))
    source = json_source([str(path)], arrow_schema("f float"))
    assert_same(spark.read.schema("f float").json(str(path)), source)


DIGITS = [
    "1",
    "٣",
    "𝟙",
    "1𝟙",
    "-𝟙",
    "𝟙.5",
    "1.𝟙",
    "1" * 39,
    "1" * 5000,
    "-" + "1" * 5000,
    "0" * 5000 + "1",
    "9" * 19,
    "9223372036854775808",
    "1" * 5000 + ".",
]
KINDS = ("tinyint", "int", "bigint", "double", "decimal(20,0)", "decimal(38,10)", "string")


@pytest.mark.parametrize("text", DIGITS, ids=lambda text: text[:6] + str(len(text)))
def test_rare_digits_and_long_numbers(spark, tmp_path, text):
    """Java has no digits above U+FFFF, and Python converts at most 4,300 digits to an integer."""
    path = written(tmp_path, "|".join([text] * len(KINDS)) + "\n")
    compare(spark, path, {f"c{i}": kind for i, kind in enumerate(KINDS)}, sep="|")
    compare(spark, path, sep="|", inferSchema=True)
