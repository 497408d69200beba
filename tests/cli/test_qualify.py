"""``kquery-spark qualify``: event logs without Spark, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kquery_spark.cli import qualification
from kquery_spark.cli.commands import cli
from kquery_spark.cli.failures import Exit, run

LOGS = Path(__file__).parents[1] / "qualify" / "logs"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    def refuse(*_):
        raise AssertionError("Spark was started")

    monkeypatch.setattr(qualification, "own_session", refuse)


def end(capsys, *arguments):
    code = run("kquery-spark", lambda: cli(["qualify", *map(str, arguments)], standalone_mode=False))
    return code, capsys.readouterr()


def test_a_directory_of_logs(capsys, tmp_path):
    page, numbers = tmp_path / "report.html", tmp_path / "report.json"
    code, said = end(capsys, LOGS, "--html", page, "--json", numbers)
    assert code == Exit.OK
    assert said.out.startswith("2 queries of 2 applications; the engine would run 2 of them completely\n")
    assert said.out.endswith(f"wrote {page}\nwrote {numbers}\n")
    assert said.err == ""
    assert "sum by key" in page.read_text()
    assert [a["spark_version"] for a in json.loads(numbers.read_text())["applications"]] == ["3.5.9", "4.0.5"]


@pytest.mark.parametrize(
    ("content", "arguments", "code", "says"),
    [
        (None, (), Exit.MISSING_PATH, "path does not exist"),
        ("id,name\n1,x\n", (), Exit.UNREADABLE, "is not a Spark event log: line 1"),
        ("", ("--table", "t=t.csv"), Exit.USAGE, "--table is for SQL files"),
    ],
)
def test_what_is_no_log_is_one_line(capsys, tmp_path, content, arguments, code, says):
    path = tmp_path / "log"
    if content is not None:
        path.write_text(content)
    ended, said = end(capsys, path, *arguments)
    assert ended == code
    assert says in said.err
    assert said.err.count("\n") == 1


def test_a_report_that_cannot_be_written(capsys, tmp_path):
    code, said = end(capsys, LOGS, "--html", tmp_path / "no" / "report.html")
    assert code == Exit.OUTPUT
    assert "cannot write" in said.err
