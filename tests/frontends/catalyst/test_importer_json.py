"""JSON relations are read by the engine with the session's options, or falling back to Spark with a reason."""

from __future__ import annotations

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan

ROWS = (
    '{"id":1,"name":"Ann","amount":10.5,"tags":["a","b"]}\n{"id":"x","name":7.10}\n{"id":3,\n\n'
    '{"id":4,"name":"Ann","address":{"city":"Rome","zip":185}}\n'
)
DDL = "id int, name string, amount decimal(10,2), tags array<string>, address struct<city:string,zip:int>"


@pytest.fixture
def people(tmp_path):
    for part in (1, 2):
        (tmp_path / f"part={part}").mkdir()
        (tmp_path / f"part={part}" / "a.json").write_text(ROWS)
    return str(tmp_path)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT part, name, sum(amount) s, max(id) m, count(*) n FROM people GROUP BY part, name",
        "SELECT id, tags[0] AS tag, address.city FROM people WHERE id > 0 AND part = 2",
        "SELECT part, count(*) AS n FROM people GROUP BY part",
    ],
)
def test_a_json_table_with_partitions_is_accelerated_whole(spark, people, query):
    spark.read.json(people, schema=DDL).createOrReplaceTempView("people")
    try:
        frame = spark.sql(query)
        explained = kq.explain(frame)
        assert explained.coverage == 1.0 and not explained.reasons
        report = kq.verify(frame)
        assert report.ok and report.rows, report
    finally:
        spark.catalog.dropTempView("people")


def test_inferred_columns_are_accelerated(spark, tmp_path):
    (tmp_path / "f.json").write_text('{"b":{"y":1},"a":[1,2.5]}\n{"a":[],"c":true}\n')
    frame = spark.read.json(str(tmp_path)).selectExpr("b.y", "a[0] AS first", "c").distinct()
    assert kq.explain(frame).coverage == 1.0
    assert kq.verify(frame).ok


@pytest.mark.parametrize(
    ("options", "ddl", "reason"),
    [
        ({"multiLine": "true"}, DDL, "multiline"),
        ({"mode": "DROPMALFORMED"}, DDL, "other modes than PERMISSIVE"),
        ({"timestampFormat": "yyyy XXX"}, DDL, "date format 'yyyy XXX'"),
        ({}, DDL + ", _corrupt_record string", "_corrupt_record"),
        ({}, "name string, m map<string,int>", "map"),
    ],
)
def test_what_the_engine_does_not_follow_falls_back_to_spark(spark, people, options, ddl, reason):
    frame = spark.read.options(**options).json(people, schema=ddl).groupBy("name").count()
    explained = kq.explain(frame)
    assert explained.coverage < 1.0
    assert any(reason in sentence for _, sentence in explained.reasons)


def test_a_malformed_line_under_a_filter_for_null_is_run_by_spark(spark, people):
    # Spark's own read drops the record at its id, before it sees that the line is malformed.
    frame = spark.read.json(people, schema=DDL).where("id IS NULL").groupBy("part").count()
    fast = frame.transform(lambda d: kquery_plan(d, when="always"))
    with pytest.warns(kq.FallbackWarning, match="filters for NULL"):
        assert sorted(fast.collect()) == sorted(frame.collect())


def test_columns_with_default_values_fall_back_to_spark(spark):
    spark.sql("CREATE TABLE with_default USING json AS SELECT 1 AS a")
    try:
        spark.sql("ALTER TABLE with_default ADD COLUMN b INT DEFAULT 42")
        frame = spark.sql("SELECT b, count(*) AS n FROM with_default GROUP BY b")
        assert any("default values" in sentence for _, sentence in kq.explain(frame).reasons)
        assert kq.verify(frame).ok
        assert [tuple(row) for row in frame.collect()] == [(42, 1)]
    finally:
        spark.sql("DROP TABLE with_default")
