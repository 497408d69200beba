"""The demo from end to end, small."""

import pytest

from benchmarks import demo
from kquery_spark.cli.failures import run


def test_the_demo_compares_every_query_and_explains_one(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "session", lambda name: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    monkeypatch.setenv("COLUMNS", "160")
    arguments = ["--rows", "2400", "--scale", "0.001", "--runs", "1", "--data", str(tmp_path)]
    code = run("demo", lambda: demo.main(arguments, standalone_mode=False))
    said = capsys.readouterr()
    assert code == 0, said
    assert said.out.count("same as Spark SQL: yes") == len(demo.queries())
    assert "falls back to Spark" not in said.out
    assert said.out.index("explain TPC-H 3") < said.out.index("summary")
    assert "not comparable to published TPC-H results" in said.out


def test_different_answers_end_with_code_7(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "session", lambda name: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    real = demo.compare

    def differs(*arguments):
        from dataclasses import replace

        one, table = real(*arguments)
        return replace(one, same=False, difference="row 1: 2 instead of 1"), table

    monkeypatch.setattr(demo, "compare", differs)
    monkeypatch.setattr(demo, "queries", lambda: {demo.EXPLAINED: "SELECT count(*) AS n FROM nation"})
    arguments = ["--rows", "12", "--scale", "0.001", "--runs", "1", "--data", str(tmp_path)]
    assert run("demo", lambda: demo.main(arguments, standalone_mode=False)) == 7
    said = capsys.readouterr()
    assert "same as Spark SQL: NO" in said.out
    assert f"demo: error: not Spark's answer: {demo.EXPLAINED}" in said.err


@pytest.fixture(autouse=True)
def no_views_left(spark):
    yield
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
