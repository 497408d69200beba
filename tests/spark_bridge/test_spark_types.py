from __future__ import annotations

import json

import pyarrow as pa
import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.plan.spark_types import spark_type
from kquery_spark.types.names import YEAR_MONTH
from kquery_spark.types.spark_json import arrow_schema, arrow_type

PAIRS = [
    ("void", pa.null()),
    ("boolean", pa.bool_()),
    ("byte", pa.int8()),
    ("short", pa.int16()),
    ("integer", pa.int32()),
    ("long", pa.int64()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("decimal(15,2)", pa.decimal128(15, 2)),
    ("decimal(38,18)", pa.decimal128(38, 18)),
    ("string", pa.string()),
    ("binary", pa.binary()),
    ("date", pa.date32()),
    ("timestamp", pa.timestamp("us", tz="Asia/Tokyo")),
    ("timestamp_ntz", pa.timestamp("us")),
    ("interval day to second", pa.duration("us")),
    ("interval year to month", YEAR_MONTH),
    (
        {"type": "array", "elementType": "integer", "containsNull": False},
        pa.list_(pa.field("element", pa.int32(), False)),
    ),
    (
        {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": True},
        pa.map_(pa.string(), pa.date32()),
    ),
    (
        {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": False, "metadata": {}}]},
        pa.struct([pa.field("a", pa.int64(), False)]),
    ),
]


@pytest.mark.parametrize(("spark", "arrow"), PAIRS, ids=str)
def test_types_go_both_ways(spark, arrow):
    assert arrow_type(spark, "Asia/Tokyo") == arrow
    assert spark_type(arrow) == spark


@pytest.mark.parametrize("name", ["interval year", "interval month"])
def test_every_year_month_interval_is_of_months(name):
    assert arrow_type(name, "UTC") == YEAR_MONTH


@pytest.mark.parametrize("name", ["interval day", "interval hour to minute", "interval second"])
def test_every_day_time_interval_is_a_duration(name):
    assert arrow_type(name, "UTC") == pa.duration("us")


@pytest.mark.parametrize(
    ("spark", "reason"),
    [
        ({"type": "array", "elementType": "interval month", "containsNull": True}, "year-month"),
        ("interval", "calendar"),
        ("variant", "variant"),
        ("string collate UTF8_LCASE", "UTF8_LCASE"),
        ("time(9)", "six decimals"),
        ("char(5)", "padding"),
        ("decimal(5,-2)", "scale"),
        ("geometry(4326)", "not known"),
        ({"type": "udt", "class": "x"}, "user-defined"),
        ({"type": "array", "elementType": "variant", "containsNull": True}, "variant"),
        (7, "not known"),
    ],
)
def test_types_the_engine_cannot_answer_for_are_declined(spark, reason):
    with pytest.raises(Unsupported, match=reason):
        arrow_type(spark, "UTC")


def test_encoded_arrow_types_are_the_type_they_encode():
    assert spark_type(pa.dictionary(pa.int32(), pa.string())) == "string"
    assert spark_type(pa.large_string()) == spark_type(pa.string_view()) == "string"
    assert spark_type(pa.large_binary()) == "binary"


@pytest.mark.parametrize(
    "arrow", [pa.uint8(), pa.timestamp("ns"), pa.time64("us"), pa.decimal256(50, 2)], ids=str
)
def test_arrow_types_without_a_spark_type_are_declined(arrow):
    with pytest.raises(Unsupported):
        spark_type(arrow)


def test_a_schema_keeps_nullability_and_varchar_and_declines_collations(spark):
    struct = json.loads(spark.sql("select 1 as a, cast(null as string) as b")._jdf.schema().json())
    schema = arrow_schema(struct, "UTC")
    assert schema == pa.schema([pa.field("a", pa.int32(), False), pa.field("b", pa.string())])
    struct["fields"][1]["metadata"] = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    assert arrow_schema(struct, "UTC").field("b").metadata == {b"__CHAR_VARCHAR_TYPE_STRING": b"varchar(3)"}
    collated = json.loads(spark.sql("select 'a' collate UTF8_LCASE as c")._jdf.schema().json())
    with pytest.raises(Unsupported, match="collation"):
        arrow_schema(collated, "UTC")


@pytest.mark.parametrize(
    "ddl",
    [
        "a int",
        "a decimal(9,3), b map<string,array<date>>",
        "a struct<x:binary,y:timestamp>",
        "a interval day",
    ],
)
def test_sparks_own_schemas_come_back(spark, ddl):
    struct = json.loads(spark.createDataFrame([], ddl).schema.json())
    back = spark_type(pa.struct(list(arrow_schema(struct, "UTC"))))
    text = json.dumps(back, sort_keys=True)
    assert text.replace("interval day to second", "interval day") == json.dumps(struct, sort_keys=True)
