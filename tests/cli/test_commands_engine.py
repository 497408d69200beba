"""The console script's commands on the engine, over the session of the tests."""

import re

import pytest

from kquery_spark.cli import commands
from kquery_spark.cli.failures import run

QUERY = "SELECT n_regionkey, count(*) AS nations FROM nation GROUP BY n_regionkey ORDER BY n_regionkey"


@pytest.fixture
def shell(spark, tpch_dir, monkeypatch, capfd):
    """``shell("sql", ...)`` -> code, out, err, with ``nation`` as a table."""
    monkeypatch.setattr(commands, "own_session", lambda name, log_level: spark)

    def call(command, *arguments):
        everything = [
            command,
            *([] if "--file" in arguments else [QUERY]),
            "--table",
            f"nation={tpch_dir / 'nation.parquet'}",
            *map(str, arguments),
        ]
        capfd.readouterr()
        code = run("kquery-spark", lambda: commands.cli(everything, standalone_mode=False))
        return code, *capfd.readouterr()

    return call


@pytest.mark.parametrize("engine", ["spark", "kquery", "both", "local"])
def test_sql_shows_the_same_rows_on_every_engine(shell, engine):
    code, out, err = shell("sql", "--engine", engine)
    assert code == 0, err
    # five regions of five nations each, however the table is drawn
    assert re.findall(r"\b(\d)\s*[|│ ]\s*5\b", out) == ["0", "1", "2", "3", "4"]


def test_sql_writes(shell, tmp_path, spark):
    code, out, _ = shell("sql", "--output", tmp_path / "r.csv")
    assert (code, out) == (0, f"wrote {tmp_path / 'r.csv'}, engine kquery\n")
    assert spark.read.csv(str(tmp_path / "r.csv"), header=True).count() == 5


def test_the_local_engine_writes_the_format_of_the_ending(shell, tmp_path, spark):
    for ending in ("csv", "parquet", "json", "orc"):
        path = tmp_path / f"r.{ending}"
        code, out, err = shell("sql", "--engine", "local", "--output", path)
        assert (code, out) == (0, f"wrote {path}, engine local\n"), err
        assert spark.read.format(ending).load(str(path), header=True).count() == 5


def test_both_engines_are_compared_before_the_result_is_shown_or_written(shell, tmp_path):
    for arguments in ((), ("--output", tmp_path / "r.csv")):
        code, out, err = shell("sql", "--engine", "both", *arguments)
        assert code == 0, err
        assert out.startswith("same as Spark SQL: yes (5 rows, 2 columns; in the order of n_regionkey")


def test_an_output_that_spark_cannot_write_is_one_line(shell):
    code, _, err = shell("sql", "--output", "/proc/r.csv")
    assert code == 8
    assert err.startswith("kquery-spark: error: cannot write /proc/r.csv: ")
    assert "calling o" not in err


def test_explain_shows_the_stages(shell):
    code, out, err = shell("explain")
    assert code == 0, err
    assert "nation" in out
    assert re.search("stage", out, re.IGNORECASE)


def test_verify_says_ok(shell):
    code, out, err = shell("verify")
    assert code == 0, err
    assert out.strip()


@pytest.mark.parametrize("command", ["explain", "verify"])
def test_statements_are_not_run_to_be_explained(shell, spark, tmp_path, command):
    file = tmp_path / "statement.sql"
    file.write_text("CREATE TEMPORARY VIEW explained AS SELECT 1")
    code, _, err = shell(command, "--file", file)
    assert code != 0
    assert "only queries can be explained or verified" in err
    assert not spark.catalog.tableExists("explained")
