"""What is checked before Spark starts: tables, outputs, report files, addresses."""

import os
import socket
from pathlib import Path

import pytest

from kquery_spark.cli import commands, qualification
from kquery_spark.cli.failures import Exit, Failure, run
from kquery_spark.cli.paths import check_new_directory, check_new_file, local_path, path_on_disk


@pytest.fixture
def early(monkeypatch, capsys):
    """Call a command that must end before Spark starts; returns its code and its line."""
    for module in (commands, qualification):
        monkeypatch.setattr(module, "own_session", lambda *_: pytest.fail("Spark was started"))
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments):
        code = run("kquery-spark", lambda: commands.cli([str(a) for a in arguments], standalone_mode=False))
        error = capsys.readouterr().err
        assert error.count("\n") == 1, error
        return code, error

    return call


@pytest.fixture
def table(tmp_path: Path) -> str:
    (tmp_path / "ok.csv").write_text("a\n1\n")
    return f"t={tmp_path / 'ok.csv'}"


@pytest.mark.parametrize("prefix", ["", "csv:", "file:", "csv:file://"])
@pytest.mark.parametrize(
    "command",
    [("sql", "SELECT 1"), ("explain", "SELECT 1"), ("verify", "SELECT 1"), ("serve", "--engine", "kquery"),
     ("qualify",), ("sql", "SELECT 1", "--engine", "local"), ("serve", "--port", "0")],
    ids=" ".join,
)  # fmt: skip
def test_a_misspelled_table_starts_no_spark(early, tmp_path, command, prefix):
    (tmp_path / "query.sql").write_text("SELECT 1")
    if command == ("qualify",):
        command = ("qualify", tmp_path / "query.sql")
    path = f"{'' if prefix.endswith(':') or not prefix else prefix}{tmp_path / 'okk.csv'}"
    table = f"t={prefix if prefix.endswith(':') else ''}{path}"
    code, error = early(*command, "--table", table)
    assert code == Exit.MISSING_PATH
    assert "path does not exist: " in error
    assert "okk.csv" in error


def test_a_default_file_system_decides_about_paths_without_a_scheme(monkeypatch, tmp_path):
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert path_on_disk("data/t.csv") == "data/t.csv"
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert path_on_disk("data/t.csv") is None
    assert path_on_disk("file:///data/t.csv") == "/data/t.csv"


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("a/b.csv", "a/b.csv"),
        ("file:/a", "/a"),
        ("file:///a", "/a"),
        ("a:b.csv", "a:b.csv"),
        ("s3a://bucket/a", None),
        ("hdfs:/a", None),
    ],
)
def test_a_path_with_another_scheme_is_not_local(path, local):
    assert local_path(path) == local


@pytest.mark.parametrize("engine", ["kquery", "local", "spark", "both"])
@pytest.mark.parametrize("output", ["file/r.parquet", "there", "file", "/proc/r.csv"])
def test_an_output_that_cannot_be_written_starts_no_spark(early, tmp_path, table, engine, output):
    (tmp_path / "file").write_text("x")
    (tmp_path / "there").mkdir()
    code, error = early(
        "sql", "SELECT 1", "--table", table, "--engine", engine, "--output", tmp_path / output
    )
    assert code == Exit.OUTPUT
    assert str(tmp_path / output) in error
    assert "calling o" not in error
    assert sorted(os.listdir(tmp_path)) == ["file", "ok.csv", "there"]


def test_a_directory_without_permission_is_named(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o500)
    if os.access(tmp_path / "mine", os.W_OK):  # root
        with pytest.raises(Failure, match=r"cannot write /proc/x/r: .* in /proc"):
            check_new_directory("/proc/x/r", "/proc/x/r", overwrite=False)
        return
    with pytest.raises(Failure, match=r"Permission denied in .*mine"):
        check_new_directory(str(tmp_path / "mine" / "r"), "r", overwrite=False)


def test_a_slash_after_the_path_does_not_hide_an_existing_file(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(Failure, match="output exists"):
        check_new_directory(f"{tmp_path}/file/", "file/", overwrite=False)


@pytest.mark.parametrize("option", ["--html", "--json"])
def test_a_report_file_is_checked_before_the_logs_are_read(early, tmp_path, option):
    (tmp_path / "query.sql").write_text("SELECT 1")
    code, error = early("qualify", tmp_path / "query.sql", option, tmp_path / "missing" / "r.html")
    assert code == Exit.OUTPUT
    assert "missing/r.html" in error
    kept = tmp_path / "kept.html"
    kept.write_text("old")
    check_new_file(kept)
    check_new_file(tmp_path / "new.html")
    assert kept.read_text() == "old"
    assert not (tmp_path / "new.html").exists()


@pytest.mark.parametrize("option", ["--record", "--output"])
def test_files_of_a_campaign_are_checked_before_it_begins(early, tmp_path, option):
    (tmp_path / "file").write_text("x")
    code, error = early("fuzz", "--cases", "1", option, tmp_path / "file" / "r")
    assert code == Exit.OUTPUT
    assert f"cannot write {tmp_path / 'file' / 'r'}" in error


@pytest.mark.parametrize("engine", ["local", "kquery"])
def test_a_busy_port_is_said_before_spark_starts(early, table, engine):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        code, error = early("serve", "--table", table, "--engine", engine, "--port", port)
    assert code == Exit.USAGE
    assert f"another process listens on port {port}; choose another port, or 0 for any free port" in error


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("203.0.113.77", "is not an address of this machine"),
        ("no.such.invalid", "cannot be resolved"),
    ],
)
def test_a_wrong_host_is_named(early, table, tmp_path, host, reason):
    (tmp_path / "token").write_text("secret")
    (tmp_path / "token").chmod(0o600)
    code, error = early("serve", "--table", table, "--host", host, "--token-file", tmp_path / "token")
    assert code == Exit.USAGE
    assert reason in error
    assert host in error
