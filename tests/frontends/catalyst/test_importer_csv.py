"""CSV relations are read by the engine with the session's options, or falling back to Spark with a reason."""

from __future__ import annotations

import pytest

import kquery_spark as kq

ROWS = 'id,name,amount,day\n1,Ann,10.50,2019-01-02\n2,"Bob, jr",,2019-02-03\n3,,7.25,\n'
DDL = "id int, name string, amount decimal(10,2), day date"


@pytest.fixture
def people(tmp_path):
    (tmp_path / "part=1").mkdir()
    (tmp_path / "part=2").mkdir()
    (tmp_path / "part=1" / "a.csv").write_text(ROWS)
    (tmp_path / "part=2" / "b.csv").write_text(ROWS.replace("Ann", "Änne"))
    return str(tmp_path)


def test_a_csv_table_with_partitions_is_accelerated_whole(spark, people):
    frame = spark.read.csv(people, header=True, schema=DDL)
    query = frame.groupBy("part", "name").agg({"amount": "sum", "day": "max"})
    explained = kq.explain(query)
    assert explained.coverage == 1.0 and not explained.reasons
    report = kq.verify(query)
    assert report.ok and report.rows == 6, report


def test_an_option_the_engine_does_not_follow_leaves_the_file_to_spark(spark, people):
    frame = spark.read.csv(people, header=True, schema=DDL, encoding="ISO-8859-1")
    explained = kq.explain(frame.groupBy("name").count())
    assert explained.coverage < 1.0
    assert any("encoding" in sentence for _, sentence in explained.reasons)
    assert kq.verify(frame.groupBy("name").count()).ok


def test_a_column_for_corrupt_records_leaves_the_file_to_spark(spark, people):
    frame = spark.read.csv(people, header=True, schema=DDL + ", _corrupt_record string")
    explained = kq.explain(frame.groupBy("name").count())
    assert any("corrupt" in sentence for _, sentence in explained.reasons)
