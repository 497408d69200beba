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
    for command in ("bench", "demo", "sql", "explain", "verify"):
        assert f"\n  {command} " in said.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sql",), "say the SQL once"),
        (("explain", "SELECT 1", "--file", "x.sql"), "say the SQL once"),
        (("sql", "SELECT 1", "--table", "t"), "should be NAME=PATH"),
        (("sql", "SELECT 1", "--engine", "duck"), "'duck' is not one of"),
        (("sql", "SELECT 1", "--engine", "local", "--output", "x"), "--output needs Spark"),
        (("nonsense",), "No such command"),
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
