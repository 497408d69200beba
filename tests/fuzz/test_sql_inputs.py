"""The runner for the input format of Spark's SQLQueryTestSuite, on a small directory of our own inputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import tests.fuzz.sql_inputs.__main__ as command
from tests.fuzz.sql_inputs import judge as judging
from tests.fuzz.sql_inputs.modes import FileWriter, session_settings, without_udf
from tests.fuzz.sql_inputs.parse import SqlInput, find_inputs, parse_file
from tests.fuzz.sql_inputs.report import as_json, differences, render
from tests.fuzz.sql_inputs.run import is_query, run_inputs
from tests.fuzz.sql_inputs.tables import TEST_TABLES, create_test_tables, remove_leftovers

INPUTS = Path(__file__).parent / "inputs"


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    (data / "agg.data").write_text("56\t7.8\n100\t99.097\n")
    create_test_tables(spark, data)
    yield
    for table in TEST_TABLES:
        spark.sql(f"DROP TABLE IF EXISTS {table}")


def test_statements_settings_and_dimensions():
    source = parse_file(INPUTS, INPUTS / "queries.sql")
    assert source.statements[0].startswith("CREATE TEMPORARY VIEW numbers")
    delimited = [s for s in source.statements if "one statement; with" in s]
    assert len(delimited) == 1 and "'x;y'" in delimited[0]
    assert "SELECT upper(s)\nFROM numbers WHERE n > 1" in source.statements
    assert source.settings == {"spark.sql.shuffle.partitions": "3", "spark.sql.adaptive.enabled": "false"}
    assert len(source.combinations(every=True)) == 4
    assert source.combinations(every=False) == [
        {
            **source.settings,
            "spark.sql.codegen.wholeStage": "true",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
        }
    ]
    assert source.for_spark
    assert not parse_file(INPUTS, INPUTS / "other_engine.sql").for_spark


def test_files_are_found_by_pattern_and_directories_decide_settings():
    names = [p.relative_to(INPUTS).as_posix() for p in find_inputs(INPUTS)]
    assert names == sorted(names) and "nonansi/lenient.sql" in names
    assert [p.name for p in find_inputs(INPUTS, ["nonansi/*"])] == ["lenient.sql"]
    lenient = parse_file(INPUTS, INPUTS / "nonansi" / "lenient.sql")
    assert session_settings(lenient, "as-is")["spark.sql.ansi.enabled"] == "false"
    postgres = parse_file(INPUTS, INPUTS / "postgreSQL" / "functions.sql")
    assert session_settings(postgres, "as-is")["spark.sql.legacy.interval.enabled"] == "true"
    assert "ConstantFolding" in session_settings(postgres, "unfolded")["spark.sql.optimizer.excludedRules"]
    assert without_udf(SqlInput("udf/a.sql", (), {}), "SELECT udf(a), my_udf(b)") == "SELECT (a), my_udf(b)"


def test_what_is_a_query():
    assert is_query("/* first */ WITH t AS (SELECT 1) SELECT * FROM t")
    assert is_query("(SELECT 1) UNION (SELECT 2)")
    assert not is_query("WITH t AS (SELECT 1) INSERT INTO made SELECT * FROM t")
    assert not is_query("EXPLAIN SELECT 1")


def test_inline_tables_become_files(spark, tmp_path):
    writer = FileWriter(spark, tmp_path)
    text = writer.rewrite("SELECT a FROM VALUES (1, ')'), (2, 'x') AS t(a, b) WHERE a IN (1, 2)")
    assert "VALUES" not in text and text.endswith(" AS t(a, b) WHERE a IN (1, 2)")
    assert [row.a for row in spark.sql(text).collect()] == [1, 2]
    assert writer.rewrite("INSERT INTO made VALUES (1)") == "INSERT INTO made VALUES (1)"
    # an interval has no place in Parquet as Spark writes it, so the rows stay where they are
    kept = "SELECT * FROM VALUES (make_interval(1)) AS t(a)"
    assert writer.rewrite(kept) == kept
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW once AS SELECT 1 AS x")
    writer.materialize("CREATE OR REPLACE TEMPORARY VIEW once AS SELECT 1 AS x")
    assert spark.table("once").inputFiles()
    spark.catalog.dropTempView("once")


@pytest.mark.parametrize("mode", ["as-is", "parquet", "unfolded"])
def test_a_directory_runs_in_every_mode_without_a_difference(spark, tables, mode):
    results = list(run_inputs(spark, INPUTS, find_inputs(INPUTS), [mode]))
    kinds = {(r.file, r.statement.split("\n")[-1]): r.outcome.kind for r in results}
    assert differences(results) == [], render(results)
    assert not any(file == "other_engine.sql" for file, _ in kinds)
    assert kinds["queries.sql", "SELECT 1 / (n - 1) FROM numbers"] in ("both fail", "fallback")
    assert kinds["queries.sql", "SELECT no_such_column FROM numbers"] == "rejected"
    assert kinds["queries.sql", "SELECT sum(key), max(value) FROM testdata"] == "same"
    assert kinds["queries.sql", "SELECT x FROM made"] == "same"
    assert kinds["queries.sql", "CREATE TABLE made (x INT) USING parquet"] == "command"
    assert kinds["queries.sql", "SELECT interval '1' month AS i, n FROM numbers"] != "not comparable"
    if mode == "parquet":
        assert kinds["nonansi/lenient.sql", "SELECT a / b FROM VALUES (1, 0), (1, 2) AS t(a, b)"] == "same"
    assert not spark.catalog.tableExists("made")
    text = render(results)
    assert text.startswith(" " * (len(mode) - 4 if len(mode) > 4 else 0) + "mode")
    assert as_json(results)["modes"][mode]["rejected"] == 1


def test_a_wrong_answer_is_reported_and_ends_with_code_7(spark, tables, tmp_path, monkeypatch):
    right = judging.verify

    def lies(frame):
        report = right(frame)
        return (
            report
            if "elsewhere" not in frame.columns
            else type(report)(False, True, 1.0, 1, 1, 0.0, 0.0, (judging_difference(),))
        )

    def judging_difference():
        from kquery_spark.verify import Difference

        return Difference("1 in Spark, 2 in the engine")

    monkeypatch.setattr(judging, "verify", lies)
    monkeypatch.setattr(command, "test_session", lambda warehouse: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    monkeypatch.setattr(command, "create_test_tables", lambda *given: None)
    output = tmp_path / "out.json"
    arguments = [str(INPUTS), "--files", "postgreSQL/*", "--json", str(output)]
    result = CliRunner().invoke(command.main, arguments)
    assert result.exit_code == command.DIFFERENT_ANSWERS, result.output
    assert "differ: postgreSQL/functions.sql statement 2 (as-is)" in result.output
    assert "SELECT 1 AS elsewhere" in result.output
    (wrong,) = [s for s in json.loads(output.read_text())["statements"] if s["outcome"]["kind"] == "differ"]
    assert wrong["number"] == 2
    monkeypatch.undo()
    remove_leftovers(spark)
