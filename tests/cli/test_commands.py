"""The console script: what it refuses before Spark is started."""

import pytest

from kquery_spark.cli.commands import cli
from kquery_spark.cli.failures import Exit, run


def end(capsys, *arguments):
    code = run("kquery-spark", lambda: cli(list(arguments), standalone_mode=False))
    return code, capsys.readouterr()


def test_help_names_every_command(capsys):
    code, said = end(capsys, "--help")
    assert code == Exit.OK
    for command in ("bench", "calibrate", "demo", "sql", "explain", "fuzz", "qualify", "verify", "warm"):
        assert f"\n  {command} " in said.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sql",), "pass the SQL as an argument or with --file, not both"),
        (("explain", "SELECT 1", "--file", "x.sql"), "pass the SQL as an argument or with --file, not both"),
        (("sql", "SELECT 1", "--table", "t"), "should be NAME=PATH"),
        (("sql", "SELECT 1", "--engine", "duck"), "'duck' is not one of"),
        (("nonsense",), "No such command"),
        ((), "a command is missing"),
    ],
)
def test_wrong_arguments_are_one_line_and_code_2(capsys, arguments, says):
    code, said = end(capsys, *arguments)
    assert code == Exit.USAGE
    assert said.err.startswith("kquery-spark: error: ")
    assert says in said.err
    assert said.err.count("\n") == 1


def test_a_missing_sql_file_is_code_3(capsys):
    code, said = end(capsys, "sql", "--file", "/no/such.sql")
    assert (code, said.err) == (Exit.MISSING_PATH, "kquery-spark: error: path does not exist: /no/such.sql\n")


def test_the_local_engine_reads_globs_and_shows_whole_strings(capsys, tmp_path):
    for i in range(2):
        (tmp_path / f"{i}.csv").write_text(f"a\n{i} and a text of more than twenty characters\n")
    code, said = end(
        capsys, "sql", "SELECT a FROM t", "--engine", "local", "--table", f"t=file:{tmp_path}/*.csv"
    )
    assert code == Exit.OK
    assert "1 and a text of more than twenty characters" in said.out


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM t", Exit.UNREADABLE),
        ("SELECT INTERVAL '1' MONTH", Exit.DECLINED),
        ("SELECT x", Exit.BAD_SQL),
    ],
)
def test_the_local_engine_ends_with_the_same_codes(capsys, tmp_path, sql, code):
    table = []
    if "FROM" in sql:
        (tmp_path / "bad.parquet").write_bytes(b"this is not parquet at all")
        table = ["--table", f"t={tmp_path / 'bad.parquet'}"]
    assert end(capsys, "sql", sql, "--engine", "local", *table)[0] == code
