from __future__ import annotations

import datetime
import os

import pyarrow as pa
import pytest

from kquery_spark.sources.file_relation import FileRelation
from kquery_spark.sources.text_format import CORRECTED, TIME_PARSER
from kquery_spark.spark_bridge.relations.leaves import (
    LocalRows,
    OneRow,
    OtherRelation,
    RangeRelation,
    RelationReader,
)
from kquery_spark.spark_bridge.session.hybrid_zones import HybridZones
from kquery_spark.spark_bridge.session.settings import EXPECTED, session_settings
from kquery_spark.types.spark_json import MONTHS_WITHIN
from tests.conftest import settings

#: Values of Spark 4, where some defaults of 3.5 are others.
DEFAULTS = {
    "spark.sql.ansi.enabled": "true",
    TIME_PARSER: CORRECTED,
    "spark.sql.parquet.datetimeRebaseModeInRead": CORRECTED,
    "spark.sql.parquet.int96RebaseModeInRead": CORRECTED,
}


@pytest.fixture
def leaf(spark, fetch, jvm):
    def leaf_of(query):
        facts = fetch(query)
        (node,) = (n for n in facts.parse().walk() if not n.children)
        return RelationReader(facts, jvm, "UTC", spark._jsc.hadoopConfiguration, HybridZones(jvm)).read(node)

    return leaf_of


@pytest.mark.parametrize("format_name", ["parquet", "orc", "json", "csv"])
def test_files_of_each_format(spark, leaf, tmp_path, format_name):
    path = str(tmp_path / "data with space")
    spark.range(10).selectExpr("id", "cast(id as string) s").repartition(3).write.format(format_name).save(
        path
    )
    found = leaf(spark.read.format(format_name).schema("id bigint, s string").load(path))
    assert isinstance(found, FileRelation)
    assert found.format == format_name
    assert found.roots == (f"file:{path}",)
    assert found.data_schema == pa.schema([("id", pa.int64()), ("s", pa.string())])
    assert len(found.partition_schema) == 0
    on_disk = {f"file:{path}/{name}" for name in os.listdir(path) if name.startswith("part-")}
    assert {file.path for file in found.files} == on_disk
    for file in found.files:
        status = os.stat(file.path.removeprefix("file:"))
        assert (file.size, file.modified_ms) == (status.st_size, int(status.st_mtime * 1000))


def test_partition_values_with_their_types(spark, leaf, tmp_path):
    path = str(tmp_path / "parts")
    rows = [
        (1, 10, datetime.date(2020, 1, 2), "a b/c"),
        (2, None, None, None),
        (3, 12, datetime.date(1969, 1, 1), "null"),
    ]
    frame = spark.createDataFrame(rows, "v int, p int, d date, s string")
    frame.coalesce(1).write.partitionBy("p", "d", "s").parquet(path)
    found = leaf(spark.read.schema("v int, p int, d date, s string").parquet(path))
    assert isinstance(found, FileRelation)
    assert found.partition_schema.names == ["p", "d", "s"]
    values = {tuple(scalar.as_py() for scalar in file.partition) for file in found.files}
    assert values == {row[1:] for row in rows}


def test_options_have_lower_case_names(spark, leaf, tmp_path):
    path = str(tmp_path / "c")
    spark.range(3).write.csv(path)
    found = leaf(spark.read.option("nullValue", "-").option("SEP", "|").schema("id bigint").csv(path))
    assert isinstance(found, FileRelation)
    assert found.options["nullvalue"] == "-"
    assert found.options["sep"] == "|"


def test_empty_and_hidden_files_are_left_out(spark, leaf, tmp_path):
    path = tmp_path / "e"
    spark.range(3).coalesce(1).write.csv(str(path))
    (path / "empty.csv").touch()
    (path / "_hidden.csv").write_text("1\n")
    found = leaf(spark.read.schema("id bigint").csv(str(path)))
    assert isinstance(found, FileRelation)
    assert [file.path.rsplit("/", 1)[1].startswith("part-") for file in found.files] == [True]


def test_rows_ranges_and_one_row(leaf):
    rows = leaf("select * from values (1, 'a'), (2, null) as t(a, b)")
    assert isinstance(rows, LocalRows)
    assert rows.count == 2
    assert leaf("select id from range(3, -9, -2)") == RangeRelation(3, -9, -2)
    assert leaf("select 1") == OneRow()


def test_what_only_spark_can_read(spark, leaf, tmp_path):
    path = str(tmp_path / "t")
    spark.range(3).selectExpr("cast(id as string) s").write.text(path)
    found = leaf(spark.read.text(path))
    assert isinstance(found, OtherRelation)
    assert found.reason == "files of TextFileFormat are not supported"
    cached = spark.range(3).cache()
    try:
        assert isinstance(leaf(cached), OtherRelation)
    finally:
        cached.unpersist()


def test_a_column_of_a_type_we_lack_is_left_out(spark, leaf, tmp_path):
    path = str(tmp_path / "m")
    spark.sql("select array(interval 3 months) as x, 1 as y").write.parquet(path)
    found = leaf(spark.read.parquet(path))
    assert isinstance(found, FileRelation)
    assert found.data_schema.names == ["y"]
    assert found.unread == {"x": MONTHS_WITHIN}
    assert leaf(spark.read.schema("x array<interval month>, y int").json(path)) == OtherRelation(
        "json", MONTHS_WITHIN
    )


def test_settings_of_the_session(spark, jvm):
    with settings(spark, DEFAULTS):
        found = session_settings(spark._jsparkSession.sessionState().conf(), jvm)
    assert (found.ansi, found.time_zone, found.case_sensitive) == (True, "UTC", False)
    assert found.corrupt_record_column == "_corrupt_record"
    for name in ("datetime", "int96"):
        assert found.text(f"spark.sql.parquet.{name}RebaseModeInRead") == "CORRECTED"
    assert found.unexpected() == {}
    assert set(EXPECTED) <= set(found.values)


def test_settings_the_engine_does_not_follow_are_named(spark, jvm):
    name = "spark.sql.legacy.charVarcharAsString"
    with settings(spark, {**DEFAULTS, name: "true"}):
        found = session_settings(spark._jsparkSession.sessionState().conf(), jvm)
    assert found.unexpected() == {name: "true"}
    assert found.unexpected("spark.sql.parquet.") == {}


def test_a_setting_this_spark_lacks_does_not_hide_the_others(spark, jvm, monkeypatch):
    from kquery_spark.spark_bridge.session import settings

    monkeypatch.setattr(settings, "EXPECTED", {"spark.sql.no.such.setting": "true"})
    found = session_settings(spark._jsparkSession.sessionState().conf(), jvm)
    assert found.values["spark.sql.no.such.setting"] is None
    assert found.time_zone == "UTC"


def test_a_table_read_twice_is_described_once(spark, fetch, jvm, tmp_path):
    path = str(tmp_path / "twice")
    spark.range(3).write.parquet(path)
    frame = spark.read.parquet(path)
    facts = fetch(frame.crossJoin(frame).unionAll(spark.read.parquet(path).selectExpr("id", "id")))
    leaves = [node for node in facts.parse().walk() if node.cls == "LogicalRelation"]
    reader = RelationReader(facts, jvm, "UTC", spark._jsc.hadoopConfiguration, HybridZones(jvm))
    first, second, other = (reader.read(node) for node in leaves)
    assert first is second
    assert other == first
    assert other is not first


def test_equal_identity_hashes_do_not_make_two_relations_one(spark, fetch, jvm, tmp_path, monkeypatch):
    path = str(tmp_path / "grows")
    spark.range(3).write.parquet(path)
    before = spark.read.parquet(path)
    spark.range(3).write.mode("append").parquet(path)
    after = spark.read.parquet(path)
    facts = fetch(before.unionAll(after))
    relation = facts.relation
    monkeypatch.setattr(facts, "relation", lambda node: relation(node)._replace(identity_hash=1))
    leaves = [node for node in facts.parse().walk() if node.cls == "LogicalRelation"]
    reader = RelationReader(facts, jvm, "UTC", spark._jsc.hadoopConfiguration, HybridZones(jvm))
    first, second = (reader.read(node) for node in leaves)
    assert len(second.files) > len(first.files)
