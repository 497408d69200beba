"""DataFrames of statements that Spark has executed already: planning them must not execute the statement again."""

from __future__ import annotations

import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan

ACTIONS = {
    "collect": lambda frame: frame.collect(),
    "toPandas": lambda frame: frame.toPandas(),
    "toArrow": lambda frame: frame.toArrow() if hasattr(frame, "toArrow") else None,
    "toLocalIterator": lambda frame: list(frame.toLocalIterator()),
    "foreach": lambda frame: frame.foreach(id),
    "write": lambda frame: frame.write,
}
FUNCTIONS = {
    "kquery_plan": lambda frame: frame.transform(kquery_plan, when="always").collect(),
    "explain": kq.explain,
    "verify": kq.verify,
}
INSERT = "INSERT INTO command_target SELECT * FROM command_source"


@pytest.fixture
def target(spark, tmp_path):
    """A table with no rows, and a table with three."""
    names = "command_target", "command_source"
    for name in names:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.range(3).where(f"'{name}' = 'command_source'").write.saveAsTable(
            name, path=str(tmp_path / name)
        )
    yield "command_target"
    for name in names:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_does_not_repeat_an_insert(spark, target, action):
    kq.enable(spark, when="always")
    try:
        ACTIONS[action](spark.sql(INSERT))
    finally:
        kq.disable(spark)
    assert sorted(row.id for row in spark.table(target).collect()) == [0, 1, 2]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_planning_does_not_repeat_an_insert(spark, target, function):
    FUNCTIONS[function](spark.sql(INSERT))
    assert sorted(row.id for row in spark.table(target).collect()) == [0, 1, 2]


def test_a_statement_with_rows_returns_the_rows_of_its_execution(spark, target):
    shown = spark.sql(f"SHOW TABLES LIKE '{target}'")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW command_target_2 AS SELECT 1")
    assert shown.transform(kquery_plan, when="always").collect() == shown.collect()
    assert [row.tableName for row in shown.collect()] == [target]
