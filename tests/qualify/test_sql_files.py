"""SQL files, planned with Spark and not run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import ParseException

from kquery_spark.qualify.judgment import RunsOn
from kquery_spark.qualify.report import QueryOutcome
from kquery_spark.qualify.sql_files import qualify_sql, sql_files
from kquery_spark.qualify.text import render_text


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "1_whole.sql").write_text("SELECT i % 3 AS k, sum(id) FROM numbers GROUP BY 1;\n")
    (tmp_path / "2_sampled.sql").write_text("SELECT sum(id) FROM numbers TABLESAMPLE (10 PERCENT)")
    (tmp_path / "3_wrong.sql").write_text("SELECT nothing_of_that_name FROM numbers")
    (tmp_path / "notes.txt").write_text("no query")
    return tmp_path


def test_each_file_is_planned(spark, numbers, directory):
    result = qualify_sql(spark, sql_files(directory))
    whole, sampled, wrong = result.queries
    assert [query.description for query in result.queries] == ["1_whole.sql", "2_sampled.sql", "3_wrong.sql"]
    assert whole.outcome is sampled.outcome is QueryOutcome.NOT_RUN
    assert {node.name: node.runs for node in whole.nodes}["Aggregate"] is RunsOn.ENGINE
    assert {node.name: node.reason for node in sampled.nodes}["Sample"] == "random samples are not supported"
    assert wrong.outcome is QueryOutcome.FAILED
    assert "nothing_of_that_name" in wrong.error
    text = render_text(result, 20)
    assert "no query was run to measure it" in text
    assert "3_wrong.sql (failed)" in text
    assert "random samples are not supported (Sample)" in text


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE sql_file_table USING parquet AS SELECT 1 AS x", "SET spark.kquery.enabled=false"],
)
def test_statements_do_not_run(spark, tmp_path, statement):
    (tmp_path / "statement.sql").write_text(statement)
    (query,) = qualify_sql(spark, sql_files(tmp_path)).queries
    assert query.outcome is QueryOutcome.FAILED
    assert (
        query.error == "only queries can be qualified without running them, and this statement is not a query"
    )
    assert not spark.catalog.tableExists("sql_file_table")
    assert spark.conf.get("spark.kquery.enabled", "unset") == "unset"


def test_a_statement_is_never_given_to_spark(tmp_path):
    class Parser:
        def parseQuery(self, text):
            raise ParseException("no query")

        def parsePlan(self, text):
            assert text == "DROP TABLE t"

    state = SimpleNamespace(sqlParser=Parser)
    session = SimpleNamespace(_jsparkSession=SimpleNamespace(sessionState=lambda: state))
    (tmp_path / "drop.sql").write_text("DROP TABLE t;\n")
    (query,) = qualify_sql(session, sql_files(tmp_path)).queries
    assert query.outcome is QueryOutcome.FAILED
    assert query.error.startswith("only queries can be qualified")


def test_a_file_and_what_is_none(directory):
    assert sql_files(directory / "1_whole.sql") == [directory / "1_whole.sql"]
    assert sql_files(directory / "notes.txt") == []
    assert sql_files(directory / "nothing") == []
